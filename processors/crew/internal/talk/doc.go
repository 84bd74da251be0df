// Package talk is what the agents of a crew and its people say to each other: messages between two agents, broadcasts,
// interrupts, and groups. Its rules are pure: they depend on the row, the input and the step only.
//
// Every message between agents is an event bus:message, which is the history, and an event agent:message_sent. What one agent
// writes to another is a prompt of the other's row; what the crew has to say about a command is a note. Messages of groups are
// events group:message instead, and the row keeps the newest of each group for new members.
//
// A crew knows only its own agents, so nothing can be said to an agent of another crew.
package talk
