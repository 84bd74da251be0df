package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecordsCanBeReadBySDKsUnlessTheVariableIsFalse(t *testing.T) {
	for value, on := range map[string]bool{"": true, " ": true, "True": true, "false": false} {
		t.Setenv(sdkVariable, value)
		forSDK, err := forSDK()
		require.NoError(t, err)
		require.Equal(t, on, forSDK, "%q", value)
	}
	t.Setenv(sdkVariable, "yes")
	_, err := forSDK()
	require.EqualError(t, err, "FLIGHTDECK_SDK: want true or false")
}

func TestOutputsAreOrderedIfTheVariableIsTrue(t *testing.T) {
	for value, on := range map[string]bool{"": false, "TRUE": true, "false": false} {
		t.Setenv(orderedVariable, value)
		ordered, err := flagged(orderedVariable)
		require.NoError(t, err)
		require.Equal(t, on, ordered, "%q", value)
	}
	t.Setenv(orderedVariable, "yes")
	_, err := flagged(orderedVariable)
	require.EqualError(t, err, "ORDERED_OUTPUTS: want true or false")
}
