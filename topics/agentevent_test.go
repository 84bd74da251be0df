package topics

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEventsWithoutAStreamPositionArePoison(t *testing.T) {
	c := harbor(t).AgentEvents.Codec()
	for _, record := range []string{
		`{}`,
		`{"turn_id":"t","attempt":1,"seq":1,"event":{}}`,
		`{"session_id":"s","attempt":1,"seq":1,"event":{}}`,
		`{"session_id":"s","turn_id":"t","seq":1,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":0,"seq":1,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":0,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":-1,"author":"user","event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1,"result":null}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1,"event":{},"result":{"ok":true}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1,"result":{"ok":true,"stopReason":["paused"]}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1,"result":[]}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1.5,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1.5,"seq":1,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":9.007199254740993e15,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1e400,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":9223372036854775808,"event":{}}`,
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":true,"event":{}}`,
	} {
		poison(t, c, record, ErrType)
	}
}

func TestSeqAcceptsEveryNotationOfAnInteger(t *testing.T) {
	for written, seq := range map[string]int64{
		"7": 7, "7.0": 7, "0.7e1": 7, `"7"`: 7, "9223372036854775807": 9223372036854775807,
	} {
		d := harbor(t).AgentEvents.Codec().Unmarshal([]byte(
			`{"session_id":"s","turn_id":"t","attempt":1,"seq":` + written + `,"event":{}}`))
		require.NoError(t, d.Err)
		require.Equal(t, seq, d.Value.Seq)
	}
}

func TestNonStringErrorOfAResultIsReadAsItsJSON(t *testing.T) {
	d := harbor(t).AgentEvents.Codec().Unmarshal([]byte(
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1,"result":{"ok":false,"error":{"code":1}}}`))
	require.NoError(t, d.Err)
	require.Equal(t, `{"code":1}`, *d.Value.Result.Error)
}

func TestBatchesWithoutTurnOrStateArePoison(t *testing.T) {
	for _, record := range []string{
		`{}`, `{"session_id":"s","state":"complete"}`, `{"turn_id":"t","state":"complete"}`,
		`{"session_id":"s","turn_id":"t"}`, `{"session_id":"s","turn_id":"t","state":"open"}`,
	} {
		poison(t, harbor(t).BatchMessages.Codec(), record, ErrType)
	}
}
