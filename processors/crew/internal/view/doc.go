// Package view has what clients of crews see: the JSON shapes of the WebSocket's frames and of the REST answers, in the names
// of the FlightDeck of github.com/justinchuby/flightdeck. Times are ISO 8601 in UTC with milliseconds, see Time.
package view
