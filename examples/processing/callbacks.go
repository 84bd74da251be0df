package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/turn/token"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// shortSecret is the variable that permits the secrets of FlightDeck environments.
const shortSecret = "TOOL_CALLBACK_SHORT_SECRET"

// readDoor reads how large the records of the turn may be. A variable that is not valid is reported with the turn's.
func readDoor() []turnhttp.Option {
	options, _ := envoption.Options([]envoption.Variable[turnhttp.Option]{envoption.RecordLimit(turnhttp.WithRecordLimit)}, os.LookupEnv, errVariable)
	return options
}

// readCallbacks reads which callback tokens of tools the doors accept: their secrets, the newer one first, and options.
func readCallbacks(doors bool) (secrets []string, options []turnhttp.Option, err error) {
	current, previous := variable("TOOL_CALLBACK_SECRET") != "", variable("TOOL_CALLBACK_SECRET_PREVIOUS") != ""
	var errs []error
	switch all := variable("PARTS") == ""; {
	case !doors && !all:
		return nil, nil, nil // of no effect in this process
	case previous && !current:
		errs = append(errs, errors.New("TOOL_CALLBACK_SECRET_PREVIOUS is set and TOOL_CALLBACK_SECRET is not"))
	case current && !doors:
		errs = append(errs, errors.New("TOOL_CALLBACK_SECRET is set and PORT is not: no tool could call back"))
	}
	short, err := flagged(shortSecret)
	if err != nil {
		errs = append(errs, err)
	}
	if short {
		options = append(options, turnhttp.WithShortSecrets())
	}
	for _, name := range []string{"TOOL_CALLBACK_SECRET", "TOOL_CALLBACK_SECRET_PREVIOUS"} {
		secret := os.Getenv(name)
		if _, err := token.NewVerifier(secret); err != nil && !short {
			errs = append(errs, fmt.Errorf("%s has fewer than %d bytes (openssl rand -base64 32); %s=true accepts it",
				name, token.MinSecret, shortSecret))
		}
		secrets = append(secrets, secret)
	}
	secrets = slices.DeleteFunc(secrets, func(secret string) bool { return strings.TrimSpace(secret) == "" })
	for _, o := range []struct {
		variable string
		option   turnhttp.Option
	}{
		{"TOOL_CALLBACK_ANY_AGENT", turnhttp.WithTokensOfAnyAgent()},
		{"TOOL_CALLBACK_WITHOUT_EXPIRY", turnhttp.WithTokensWithoutExpiry()},
		{"TOOL_CALLBACK_SINGLE_USE", turnhttp.WithSingleUseTokens()},
	} {
		on, err := flagged(o.variable)
		if err != nil {
			errs = append(errs, err)
		}
		if on {
			options = append(options, o.option)
		}
	}
	return secrets, options, errors.Join(errs...)
}
