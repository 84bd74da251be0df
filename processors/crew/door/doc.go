// Package door is the entrance of people and browsers to crews of coding agents: a WebSocket and HTTP requests in the shapes of
// FlightDeck.
package door
