mod events;
mod public_documents;
mod webhooks;
