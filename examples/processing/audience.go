package main

import (
	"errors"
	"fmt"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
)

// The variables that let clients of the WebSocket see more than one session.
const (
	operatorsVariable = "WS_OPERATORS"
	everyoneVariable  = "WS_EVERYONE_SEES_ALL"
)

// readAudience returns the configuration of a WebSocket at an address: who sees all sessions.
func readAudience(listens string, authenticated bool) (c websocket.Config, err error) {
	operators, operatorsErr := flagged(operatorsVariable)
	everyone, everyoneErr := flagged(everyoneVariable)
	errs := []error{operatorsErr, everyoneErr}
	for name, on := range map[string]bool{operatorsVariable: operators, everyoneVariable: everyone} {
		if on && listens == "" {
			errs = append(errs, fmt.Errorf("%s is set and WS_PORT is not", name))
		}
	}
	if operators {
		if !authenticated {
			errs = append(errs, fmt.Errorf("%s requires AUTH_KEYS_FILE, AUTH_JWKS or AUTH_CLIENT_CA_FILE", operatorsVariable))
		}
		// The WebSocket also requires the right control and sessions that contain every ID.
		c.Operators = func(auth.Caller) bool { return true }
	}
	if everyone && authenticated {
		errs = append(errs, fmt.Errorf("%s shows every session to every client: it cannot be used with authentication", everyoneVariable))
	}
	c.EverySessionToEveryone = everyone
	return c, errors.Join(errs...)
}
