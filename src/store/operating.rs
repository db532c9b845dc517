//! What a person does to events of the inbox.
