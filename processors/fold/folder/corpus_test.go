package folder

import (
	"bytes"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// golden is a line of testdata/turns.jsonl; its README says what the fields mean.
type golden struct {
	ID            string       `json:"id"`
	Rule          string       `json:"rule"`
	Events        topics.Raw   `json:"events"`
	StopReason    topics.Raw   `json:"stop_reason"`
	Batch         topics.Raw   `json:"batch"`
	Trimmed       []topics.Raw `json:"trimmed"`
	AssistantText string       `json:"assistant_text"`
	Malformed     int          `json:"malformed"`
	StrictError   bool         `json:"strict_error"`
	Error         bool         `json:"error"`
}

// rawValues makes json.Unmarshal copy values into topics.Raw fields byte for byte.
var rawValues = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *topics.Raw) error {
	v, err := d.ReadValue()
	*to = bytes.Clone(v)
	return err
}))

func corpus(t testing.TB) []golden {
	t.Helper()
	file, err := os.ReadFile("testdata/turns.jsonl")
	require.NoError(t, err)
	var turns []golden
	for line := range bytes.Lines(file) {
		var g golden
		require.NoError(t, json.Unmarshal(line, &g, rawValues, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)))
		turns = append(turns, g)
	}
	require.GreaterOrEqual(t, len(turns), 40)
	return turns
}

// events are those of a turn that decode, none for one that cannot be folded.
func (g golden) events(t testing.TB) []Event {
	t.Helper()
	var events []Event
	if g.Error {
		return nil
	}
	for raw := range elements(g.Events) {
		if !isObject(raw) {
			continue
		}
		e, err := DecodeEvent(raw)
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

func eachTurn(t *testing.T, check func(*testing.T, golden)) {
	for _, g := range corpus(t) {
		t.Run(g.ID, func(t *testing.T) { check(t, g) })
	}
}

func TestCorpusFolds(t *testing.T) {
	eachTurn(t, func(t *testing.T, g golden) {
		b, err := FoldJSON(g.Events, g.StopReason)
		if g.Error {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, string(g.Batch), string(b.AppendJSON(nil)))
		require.Equal(t, g.Malformed, b.Malformed)
		require.True(t, jsontext.Value(b.AppendRecord(nil)).IsValid(jsontext.AllowDuplicateNames(true)))
		require.True(t, jsontext.Value(b.AppendEnvelope(nil)).IsValid(jsontext.AllowDuplicateNames(true)))

		trimmed := Trim(b.Messages)
		require.NotNil(t, trimmed)
		require.Equal(t, string(AppendMessages(nil, g.Trimmed)), string(AppendMessages(nil, trimmed)))

		f := NewFolder()
		require.NoError(t, f.AddJSON(g.Events))
		text, err := f.AssistantText()
		require.NoError(t, err)
		require.Equal(t, g.AssistantText, text)
	})
}

func TestStrictFailsWhereTheReferenceFails(t *testing.T) {
	eachTurn(t, func(t *testing.T, g golden) {
		b, err := FoldJSON(g.Events, g.StopReason, Strict())
		switch {
		case g.Error:
			require.Error(t, err)
		case g.StrictError:
			require.ErrorIs(t, err, ErrMalformed)
		default:
			require.NoError(t, err)
			require.Equal(t, string(g.Batch), string(b.AppendJSON(nil)))
		}
	})
}
