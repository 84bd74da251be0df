package main

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn"
)

// sdkVariable says whether records for the model can be read by the think runners of FlightDeck's SDKs. It is on unless it
// is false: this program replaces FlightDeck, whose workers may be of either kind.
const sdkVariable = "FLIGHTDECK_SDK"

// sdkOptions returns the options of the turn for the think runners of FlightDeck's SDKs.
func sdkOptions() ([]turn.Option, error) {
	switch text := variable(sdkVariable); {
	case text == "" || strings.EqualFold(text, "true"):
		return []turn.Option{turn.WithBothSpellings()}, nil
	case strings.EqualFold(text, "false"):
		return nil, nil
	default:
		return nil, fmt.Errorf("%s: want true or false", sdkVariable)
	}
}
