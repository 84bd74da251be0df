package migrate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExportGivesBackWhatWasAnsweredSinceTheImport(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	f.create(f.catalog.ToolUseAllComplete.Name())
	for _, s := range []string{"same", "more", "ended"} {
		f.respond(s, answered)
	}
	f.commit()
	_, err := f.run(t.Context())
	require.NoError(t, err)
	// What the turn's group has processed since.
	f.respond("more", strings.Replace(answered, "a2", "a3", 1), openTurn)
	f.respond("new", camelCase)
	f.respond("short", answered, `{"last_input_message":{"role":"user","content":"q3"},"last_input_response":[{"role":"assistant","content":"a3"}],"end_turn":true}`)
	f.respond("ended", "")
	f.commit()
	f.respond("later", answered) // FlightDeck will process it
	f.write(f.catalog.ToolUseAllComplete.Name(), "more", `{"results":[]}`)
	result, err := Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.NoError(t, err)
	require.Equal(t, Result{Sessions: 4}, result)
	store := f.latest(f.catalog.FlightDeckStore())
	require.Len(t, store, 4)
	require.Equal(t, f.record("more", strings.Replace(answered, "a2", "a3", 1), 0.3), string(store["more"].Value))
	require.Contains(t, string(store["new"].Value), `"previous_messages":[{"role":"user","content":"c1"}],`+
		`"last_input_message":{"role":"user","content":"c2"},"last_input_response":[{"role":"assistant","content":"c3"}]`, "in FlightDeck's names")
	require.Contains(t, string(store["short"].Value), `"previous_messages":`+history)
	require.Nil(t, store["ended"].Value)
	source := f.latest(f.catalog.ThinkRequestResponse.Name())
	for key, r := range store {
		require.Equal(t, source[key].Partition, r.Partition, "the task that reads the session restores it")
		if key != "more" { // its latest record is an open turn
			require.Equal(t, source[key].Timestamp, r.Timestamp)
		}
	}
	group := string(f.catalog.Group())
	require.Equal(t, f.ends(f.catalog.ToolUseAllComplete.Name()), f.committed(group, f.catalog.ToolUseAllComplete.Name()))

	// It may be repeated, and an import that does not know what FlightDeck does from now on is refused.
	again, err := Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.NoError(t, err)
	require.Equal(t, result, again)
	_, err = f.run(t.Context())
	require.ErrorIs(t, err, ErrExported)
	require.ErrorContains(t, err, f.catalog.Table())

	// As the error says, it can begin again.
	f.delete(f.catalog.Table())
	groups, err := f.admin.DeleteGroups(t.Context(), f.catalog.HistoryImportGroup())
	require.NoError(t, err)
	require.NoError(t, groups.Error())
	result, err = f.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, result.Sessions)
}

// record returns a think-response as FlightDeck would write it, with a session and its cost.
func (f *flightDeck) record(session, value string, cost float64) string {
	f.Helper()
	d := f.catalog.ThinkRequestResponse.Codec().Unmarshal([]byte(value))
	require.NoError(f, d.Err)
	d.Value.SessionID, d.Value.TotalSessionCost = &session, &cost
	raw, err := f.catalog.ThinkRequestResponse.Codec().Marshal(d.Value)
	require.NoError(f, err)
	return string(raw)
}

func TestExportWithoutImportGivesAllSessionsBack(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 1)
	f.respond("s", answered)
	f.respond("t", answered)
	f.commit()
	result, err := Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.NoError(t, err)
	require.Equal(t, 2, result.Sessions)
}

func TestExportRequiresFlightDecksStore(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 1)
	f.delete(f.catalog.FlightDeckStore())
	_, err := Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.ErrorIs(t, err, ErrNoStore)
	_, err = f.admin.CreateTopic(t.Context(), 3, 1, nil, f.catalog.FlightDeckStore())
	require.NoError(t, err)
	f.awaitPartitions(f.catalog.FlightDeckStore(), 3)
	_, err = Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.ErrorIs(t, err, ErrPartitions)
}
