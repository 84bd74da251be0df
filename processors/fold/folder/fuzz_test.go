package folder

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// FuzzFold folds arbitrary arrays: it never panics, the batch is JSON, and a snapshot or a log in between does not change
// it.
func FuzzFold(f *testing.F) {
	for _, g := range corpus(f) {
		f.Add([]byte(g.Events), []byte(g.StopReason))
	}
	f.Fuzz(func(t *testing.T, events, stop []byte) {
		input := slices.Clone(events)
		b, err := FoldJSON(events, stop)
		require.Equal(t, input, events)
		if _, strictErr := FoldJSON(events, stop, Strict()); err != nil {
			require.Error(t, strictErr)
			return
		}
		if err != nil {
			return
		}
		require.True(t, jsontext.Value(b.AppendRecord(nil)).IsValid(jsontext.AllowDuplicateNames(true)))
		require.LessOrEqual(t, len(Trim(b.Messages)), len(b.Messages))
		AssistantTextOf(t, events)

		f, l := NewFolder(), Log(nil)
		for raw := range elements(trimSpace(events)) {
			e, err := DecodeEvent(raw)
			if err != nil {
				return // not an object: only FoldJSON counts it
			}
			l = l.Append(e)
			require.NoError(t, f.Add(e))
			f, err = Resume(f.Snapshot())
			require.NoError(t, err)
		}
		fromLog, err := Resume(l)
		require.NoError(t, err)
		for _, f := range []*Folder{f, fromLog} {
			again, err := f.Batch(End{StopReason: stop})
			require.NoError(t, err)
			require.Equal(t, string(b.AppendRecord(nil)), string(again.AppendRecord(nil)))
		}
	})
}

func AssistantTextOf(t *testing.T, events topics.Raw) {
	f := NewFolder()
	require.NoError(t, f.AddJSON(events))
	_, err := f.AssistantText()
	require.NoError(t, err)
}

// FuzzDecodeEvent decodes arbitrary bytes: the wrapped form of a valid event decodes to the same event.
func FuzzDecodeEvent(f *testing.F) {
	for _, g := range corpus(f) {
		for raw := range elements(g.Events) {
			f.Add([]byte(raw))
		}
	}
	f.Add([]byte(`{"type":"message_delta","delta":"\ud83d","id":"\ud83d"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		input := slices.Clone(raw)
		e, err := DecodeEvent(raw)
		require.Equal(t, input, raw)
		quick, ok := readDelta(raw)
		if err != nil {
			require.False(t, ok)
			return
		}
		if ok {
			slow, err := decodeAny(raw, false)
			require.NoError(t, err)
			require.Equal(t, slow, quick)
		}
		_, _ = e.Field("id")
		wrapped := e.Wrapped()
		again, err := DecodeEvent(wrapped)
		require.NoError(t, err)
		require.True(t, bytes.Equal(wrapped, again.Wrapped()))
		if !falsy(e.Data()) {
			require.Equal(t, string(e.Data()), string(again.Data()))
		}
	})
}

// FuzzAddLog reads arbitrary bytes as a log.
func FuzzAddLog(f *testing.F) {
	for _, g := range corpus(f) {
		f.Add([]byte(Compact(g.events(f)...)))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		folder := NewFolder()
		if folder.AddLog(log) != nil {
			return
		}
		b, err := folder.Batch(End{})
		require.NoError(t, err)
		require.True(t, jsontext.Value(b.AppendRecord(nil)).IsValid(jsontext.AllowDuplicateNames(true)))
		e, _ := DecodeEvent(topics.Raw(`{"type":"message_delta","delta":"x"}`))
		_, err = Resume(Log(log).Append(e))
		require.NoError(t, err)
	})
}
