package main

import (
	"fmt"
	"strings"
)

// sdkVariable says whether records for the model can be read by the think runners of FlightDeck's SDKs. It is on unless it
// is false: this program replaces FlightDeck, whose workers may be of either kind.
const sdkVariable = "FLIGHTDECK_SDK"

// orderedVariable says whether readers of several topics see the outputs of a step in order.
const orderedVariable = "ORDERED_OUTPUTS"

// forSDK says whether the records for the model are for the think runners of FlightDeck's SDKs, too.
func forSDK() (bool, error) {
	switch text := variable(sdkVariable); {
	case text == "" || strings.EqualFold(text, "true"):
		return true, nil
	case strings.EqualFold(text, "false"):
		return false, nil
	default:
		return false, fmt.Errorf("%s: want true or false", sdkVariable)
	}
}
