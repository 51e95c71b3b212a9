mod public_documents;
