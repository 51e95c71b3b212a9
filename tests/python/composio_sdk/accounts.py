"""Auth configs and connected accounts: made, connected at once and by a link, waited for, told apart, changed, typed errors."""

import re
import threading
import urllib.parse
import urllib.request

import composio_client
from composio import exceptions
from composio.core.models.connected_accounts import auth_scheme

GET = "FAKE_GET_A_THING"


class Stay(urllib.request.HTTPRedirectHandler):
    """A browser that shows where it would go."""

    def redirect_request(self, *_):
        return None


def open_page(url, form=None):
    data = None if form is None else urllib.parse.urlencode(form).encode()
    with urllib.request.build_opener(Stay).open(url, data, timeout=30) as answer:
        return answer.read().decode()


def key_of(yard, composio, **options):
    done = composio.tools.execute(GET, {"owner": "o", "path": "p"}, dangerously_skip_version_check=True, **options)
    assert done["successful"], done
    return yard.key_used()


def fails(kind, work):
    try:
        work()
    except kind as error:
        return error
    raise AssertionError(f"{kind} was expected")


def configs(yard, composio):
    options = {"type": "use_custom_auth", "auth_scheme": "API_KEY", "credentials": {"base": yard.fake}, "name": "Ours"}
    made = composio.auth_configs.create("fake", options)
    assert made.auth_scheme == "API_KEY" and not made.is_composio_managed, made
    shown = composio.auth_configs.get(made.id)
    assert shown.name == "Ours" and shown.status == "ENABLED" and shown.credentials["base"] == yard.fake, shown
    composio.auth_configs.disable(made.id)
    assert composio.auth_configs.get(made.id).status == "DISABLED"
    assert made.id not in [item.id for item in composio.auth_configs.list(toolkit_slug="fake").items]
    fails(composio_client.BadRequestError, lambda: composio.connected_accounts.link("ann", made.id))
    composio.auth_configs.enable(made.id)
    update = {"type": "custom", "credentials": {"team": "gold"}}
    assert composio.auth_configs.update(made.id, options=update).success
    assert composio.auth_configs.get(made.id).credentials["team"] == "gold"
    error = fails(composio_client.NotFoundError, lambda: composio.auth_configs.get("ac_nothing"))
    assert error.details["status"] == 404, error.details
    return made.id


def connect(yard, composio, config):
    request = composio.connected_accounts.initiate("ann", config, config=auth_scheme.api_key({"api_key": "sk-ann-12345"}))
    account = request.wait_for_connection(timeout=10)
    assert account.status == "ACTIVE" and account.user_id == "ann" and account.toolkit.slug == "fake", account
    assert "sk-ann" not in account.model_dump_json(), account
    assert key_of(yard, composio, user_id="ann") == "sk-ann-12345"
    fails(exceptions.ComposioMultipleConnectedAccountsError, lambda: composio.connected_accounts.link("ann", config))

    request = composio.connected_accounts.link(
        "ann", config, callback_url="https://app.example/done?x=1", allow_multiple=True, alias="second"
    )
    assert request.status == "INITIATED" and request.redirect_url.startswith(yard.url + "/connect/"), request.redirect_url
    assert "api_key" in open_page(request.redirect_url)
    # The person comes while the program waits.
    ended = {}
    person = threading.Timer(1.5, lambda: ended.update(page=open_page(request.redirect_url, {"api_key": "sk-two-12345"})))
    person.start()
    account = request.wait_for_connection(timeout=20)
    person.join()
    assert account.alias == "second" and account.auth_config.id == config, account
    next_page = re.search(r'href="([^"]+)"', ended["page"]).group(1).replace("&#38;", "&")
    query = urllib.parse.parse_qs(urllib.parse.urlparse(next_page).query)
    assert query == {"x": ["1"], "status": ["success"], "connected_account_id": [account.id]}, next_page
    assert key_of(yard, composio, user_id="ann") == "sk-two-12345"

    refusing = composio.connected_accounts.link("bob", config, callback_url="https://app.example/done")
    open_page(refusing.redirect_url + "?decline=1", {})
    fails(exceptions.SDKError, lambda: refusing.wait_for_connection(timeout=10))
    # The simplest way: whatever auth config there is.
    authorized = composio.toolkits.authorize(user_id="carl", toolkit="fake")
    assert authorized.redirect_url.startswith(yard.url), authorized.redirect_url
    return account.id


def manage(yard, composio, config, second):
    accounts = composio.connected_accounts.list(user_ids=["ann"], auth_config_ids=[config], statuses=["ACTIVE"])
    assert accounts.total_items == 2 and accounts.items[0].id == second, accounts
    first = accounts.items[1].id
    composio.connected_accounts.disable(second)
    assert composio.connected_accounts.get(second).is_disabled
    assert key_of(yard, composio, user_id="ann") == "sk-ann-12345"
    fails(composio_client.UnprocessableEntityError, lambda: key_of(yard, composio, user_id="ann", connected_account_id=second))
    composio.connected_accounts.enable(second)
    assert key_of(yard, composio, user_id="ann", connected_account_id=first) == "sk-ann-12345"
    assert composio.connected_accounts.update(first, alias="first").success
    fails(composio_client.BadRequestError, lambda: composio.connected_accounts.update(first, alias="second"))
    state = {"auth_scheme": "API_KEY", "val": {"api_key": "sk-three-1234"}}
    assert composio.connected_accounts.update(first, connection={"state": state}).status == "ACTIVE"
    assert key_of(yard, composio, user_id="ann", connected_account_id=first) == "sk-three-1234"
    fails(exceptions.ComposioAclOnlyForSharedError, lambda: composio.connected_accounts.update_acl(first, allow_all_users=True))
    revoked = composio.connected_accounts.revoke(second)
    assert revoked.connected_account.status == "REVOKED", revoked
    waiting = composio.connected_accounts.link("dora", config)
    fails(exceptions.ComposioConnectedAccountNotRevokableError, lambda: composio.connected_accounts.revoke(waiting.id))
    assert composio.connected_accounts.delete(first).success
    fails(composio_client.NotFoundError, lambda: composio.connected_accounts.get(first))
    assert composio.auth_configs.delete(config).success
    fails(composio_client.NotFoundError, lambda: composio.connected_accounts.get(second))


def walk(yard):
    composio = yard.composio()
    config = configs(yard, composio)
    second = connect(yard, composio, config)
    manage(yard, composio, config, second)
    return {"accounts": "walked"}
