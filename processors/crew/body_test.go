package crew_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

// A batch of updates with one that is not strict JSON is read, and the others are not lost.
func TestCrewBodiesAreReadLeniently(t *testing.T) {
	updates, err := crewbody.Decode[crewbody.Updates](topics.Raw(`{"run":"r","session_id":"s","updates":[{"text":"\ud83d"},{"a":1,"a":2}],"later":1}`))
	require.NoError(t, err)
	require.Len(t, updates.Updates, 2)
	note, err := crewbody.Decode[crewbody.Note](topics.Raw(`{"text":"\ud83d"}`))
	require.NoError(t, err)
	require.Equal(t, "\ufffd", note.Text)
	_, err = crewbody.Decode[crewbody.Note](topics.Raw(`{"text":5}`))
	require.ErrorIs(t, err, topics.ErrType)
}

func TestCrewBodyThatWasReadCanBeWritten(t *testing.T) {
	for _, raw := range []string{
		`{"to":"*","text":"x","blocks":[{"a":1,"a":2}]}`, `{"to":"*","text":"\ud800","blocks":[{"a":"\ud800"}]}`,
		"{\"to\":\"*\",\"text\":\"\xff\",\"blocks\":[\"\xff\"]}",
	} {
		said, err := crewbody.Decode[crewbody.Say](topics.Raw(raw))
		require.NoError(t, err)
		body := crewbody.Prompt{Text: said.Text, Blocks: said.Blocks}
		got, err := crewbody.Decode[crewbody.Prompt](crewbody.Encode(body))
		require.NoError(t, err)
		require.Equal(t, said.Text, got.Text)
	}
}
