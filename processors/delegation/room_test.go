package delegation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

func TestRowIsBounded(t *testing.T) {
	small := func(c *Config) { c.RecordLimit, c.RowLimit = 128<<10, 64<<10 }
	large := chat("t", "U")
	large.Adapter = topics.Raw(`{"x":"` + strings.Repeat("x", 6<<10) + `"}`)
	t.Run("open", func(t *testing.T) {
		p := newHarness(t, small)
		var all []sentTask
		for i := 0; ; i++ {
			require.Less(t, i, 20)
			es := p.Handle(p.delegation(fmt.Sprint("c", i), from(large)))
			if len(tasks(es)) == 0 {
				requireFailed(t, es, failRoom)
				break
			}
			all = append(all, sent(t, es))
		}
		require.Greater(t, len(all), 4)
		var es effects
		for _, s := range all { // the harness checks the size of the row
			es = append(es, p.Handle(p.completed(s, strings.Repeat("y", 60<<10)))...)
		}
		var got []callback
		for len(callbacks(es)) > 0 {
			got = append(got, onlyCallback(t, es))
			es = p.Handle(p.output(got[len(got)-1].request, "ok"))
		}
		require.Len(t, got, len(all), "none is lost")
		for _, c := range got {
			require.GreaterOrEqual(t, strings.Count(c.content, "y"), minAnnounced-200)
			require.Contains(t, c.content, " of 61440 bytes")
		}
	})
	t.Run("results that wait", func(t *testing.T) {
		p := newHarness(t, small)
		var all []sentTask
		for i := range 3 {
			all = append(all, sent(t, p.Handle(p.delegation(fmt.Sprint("c", i)))))
		}
		for _, s := range all {
			p.Handle(p.completed(s, strings.Repeat("y", 60<<10)))
		}
		require.Greater(t, len(p.Read().Pending[0].Text), 30_000)
		for i := range 6 {
			sent(t, p.Handle(p.delegation(fmt.Sprint("d", i), from(large))))
		}
		require.Less(t, len(p.Read().Pending[0].Text), 30_000, "they are shortened for new delegations")
	})
	t.Run("ended", func(t *testing.T) {
		p := newHarness(t)
		for i := range maxEnded + 10 {
			p.Handle(p.completed(sent(t, p.Handle(p.callOf(SendTool, fmt.Sprint("c", i), asking))), "x"))
		}
		require.Len(t, p.Read().Tasks, maxEnded)
	})
}

// Escapes make texts longer.
func TestRecordsAreBounded(t *testing.T) {
	p := newHarness(t, func(c *Config) { c.RecordLimit, c.RowLimit = 128<<10, 100<<10 })
	p.config.Prompts = func(topics.Origin) string { return strings.Repeat("\x01", 20<<10) }
	o := chat("t", "U")
	o.Adapter = topics.Raw(`{"x":"` + strings.Repeat("x", 8<<10-8) + `"}`)
	task := sent(t, p.Handle(p.delegation("a", from(o))))
	// The harness checks the records.
	d := machinetest.Only[topics.Delegation](t, p.Handle(p.completed(task, strings.Repeat("\x01", 100<<10))))
	require.Greater(t, len(d.Result), 10<<10)
	p.key = "delegated-1"
	p.Row = nil
	p.Handle(p.output("x", strings.Repeat("\x01", 100<<10), func(o *topics.Output) {
		o.ReplyTo = topics.DelegationRoute(topics.EncodeDelegationTask(topics.DelegationTask{Agent: "front", SessionID: "s1", CallbackID: "a", Depth: 1}))
	}))
}

func TestRowOfANewerBuildIsRejected(t *testing.T) {
	raw, err := delegationrow.Table.Marshal(&delegationrow.State{Version: delegationrow.Version + 1})
	require.NoError(t, err)
	_, err = delegationrow.Table.Unmarshal(raw)
	require.ErrorIs(t, err, rows.ErrVersion)
	require.True(t, errors.Is(err, processors.ErrKeepRecord), "the record is kept for the newer build")
	_, err = delegationrow.Table.Unmarshal([]byte{0xff})
	require.Error(t, err)
	require.NotErrorIs(t, err, rows.ErrVersion)
}

func TestUnknownFieldsOfARowSurvive(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.delegation("a"))
	p.Row = append(p.Row, 0xba, 0x3e, 0x01, 'x') // field 999
	p.Handle(p.delegation("b"))
	require.Contains(t, string(p.Row), "\xba\x3e\x01x")
}
