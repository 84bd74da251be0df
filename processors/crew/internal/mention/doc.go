// Package mention finds and shows references to agents in text, such as @1a2b3c4d.
//
// Three grammars are in use. Find is that of delivery: an agent whose ID is mentioned in a person's message gets the message.
// Render is that of display, which also knows roles and @user. Query, Suggest and Insert are for a person who types a mention.
// The functions are pure.
package mention
