package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// shortSecret is the variable that permits the secrets of FlightDeck environments.
const shortSecret = "TOOL_CALLBACK_SHORT_SECRET"

// readDoor reads how large the records of the turn may be, and which callback tokens of tools the doors accept: their secrets, the newer
// one first, and switches. A size that is not valid is reported with the turn's.
func readDoor(doors bool) (c turnhttp.Config, err error) {
	turns, _ := turn.ConfigFromEnv(os.LookupEnv)
	c.RecordLimit = turns.RecordLimit
	current, previous := variable("TOOL_CALLBACK_SECRET") != "", variable("TOOL_CALLBACK_SECRET_PREVIOUS") != ""
	var errs []error
	switch all := variable("PARTS") == ""; {
	case !doors && !all:
		return c, nil // of no effect in this process
	case previous && !current:
		errs = append(errs, errors.New("TOOL_CALLBACK_SECRET_PREVIOUS is set and TOOL_CALLBACK_SECRET is not"))
	case current && !doors:
		errs = append(errs, errors.New("TOOL_CALLBACK_SECRET is set and PORT is not: no tool could call back"))
	}
	for name, to := range map[string]*bool{
		shortSecret: &c.ShortSecrets, "TOOL_CALLBACK_ANY_AGENT": &c.TokensOfAnyAgent,
		"TOOL_CALLBACK_WITHOUT_EXPIRY": &c.TokensWithoutExpiry, "TOOL_CALLBACK_SINGLE_USE": &c.SingleUseTokens,
	} {
		if *to, err = flagged(name); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range []string{"TOOL_CALLBACK_SECRET", "TOOL_CALLBACK_SECRET_PREVIOUS"} {
		secret := os.Getenv(name)
		if _, err := token.NewVerifier(secret); err != nil && !c.ShortSecrets {
			errs = append(errs, fmt.Errorf("%s has fewer than %d bytes (openssl rand -base64 32); %s=true accepts it",
				name, token.MinSecret, shortSecret))
		}
		c.CallbackSecrets = append(c.CallbackSecrets, secret)
	}
	c.CallbackSecrets = slices.DeleteFunc(c.CallbackSecrets, func(secret string) bool { return strings.TrimSpace(secret) == "" })
	return c, errors.Join(errs...)
}
