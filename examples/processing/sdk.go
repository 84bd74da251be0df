package main

import (
	"fmt"
	"strings"

	"github.com/turntable-streams/turntable/processors/turn"
)

// sdkVariable says whether records for the model can be read by the think runners of FlightDeck's SDKs. It is on unless it
// is false: this program replaces FlightDeck, whose workers may be of either kind.
const sdkVariable = "FLIGHTDECK_SDK"

// orderedVariable says whether readers of several topics see the outputs of a step in order.
const orderedVariable = "ORDERED_OUTPUTS"

// orderOptions returns the option of the turn for readers that show records in order of arrival, as chat-api does.
func orderOptions() ([]turn.Option, error) {
	on, err := flagged(orderedVariable)
	if !on {
		return nil, err
	}
	return []turn.Option{turn.WithOrderedOutputs()}, nil
}

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
