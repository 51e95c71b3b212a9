-- Apps that were registered before have the redirect URL that all shared; later ones have one each.
alter table oauth_apps add column own_redirect boolean not null default false;
