package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecordsCanBeReadBySDKsUnlessTheVariableIsFalse(t *testing.T) {
	for value, on := range map[string]bool{"": true, " ": true, "True": true, "false": false} {
		t.Setenv(sdkVariable, value)
		options, err := sdkOptions()
		require.NoError(t, err)
		require.Equal(t, on, len(options) > 0, "%q", value)
	}
	t.Setenv(sdkVariable, "yes")
	_, err := sdkOptions()
	require.EqualError(t, err, "FLIGHTDECK_SDK: want true or false")
}

func TestOutputsAreOrderedIfTheVariableIsTrue(t *testing.T) {
	for value, on := range map[string]bool{"": false, "TRUE": true, "false": false} {
		t.Setenv(orderedVariable, value)
		options, err := orderOptions()
		require.NoError(t, err)
		require.Equal(t, on, len(options) > 0, "%q", value)
	}
	t.Setenv(orderedVariable, "yes")
	_, err := orderOptions()
	require.EqualError(t, err, "ORDERED_OUTPUTS: want true or false")
}
