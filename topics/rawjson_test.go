package topics_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestRawMarshalsToItsBytes(t *testing.T) {
	type document struct {
		A topics.Raw `json:"a"`
		B topics.Raw `json:"b"`
	}
	out, err := json.Marshal(document{A: topics.Raw(`{"n":1.10,"list":[1,2]}`)})
	require.NoError(t, err)
	require.Equal(t, `{"a":{"n":1.10,"list":[1,2]},"b":null}`, string(out))

	var back document
	require.NoError(t, json.Unmarshal(out, &back))
	require.Equal(t, `{"n":1.10,"list":[1,2]}`, string(back.A))
}
