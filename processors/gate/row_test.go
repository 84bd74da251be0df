package gate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/topics"
)

func TestRowWithNewerVersionIsNotDecoded(t *testing.T) {
	raw, err := gaterow.Table.Marshal(&gaterow.State{Version: rowProof + 1})
	require.NoError(t, err)
	_, err = gaterow.Table.Unmarshal(raw)
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = gaterow.Table.Of(gaterow.Table.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = gaterow.GrantTable.Of(gaterow.GrantTable.Codec().Unmarshal(raw))
	require.ErrorIs(t, err, rows.ErrVersion)
	_, err = gaterow.Table.Of("text")
	require.Error(t, err)
	s, err := gaterow.Table.Of(nil)
	require.NoError(t, err)
	require.Nil(t, s)
}

func TestUnknownFieldsSurvive(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	p.Row = protowire.AppendTag(p.Row, 999, protowire.VarintType)
	p.Row = protowire.AppendVarint(p.Row, 7)
	outcome(t, p.Handle(p.approve("g1")))
	require.NotEmpty(t, p.Read().ProtoReflect().GetUnknown())
}

func TestRequestsWithoutRoomAreDenied(t *testing.T) {
	large := func(r *topics.GateRequest) {
		r.Args, r.ArgsSHA256 = topics.Raw(`"`+strings.Repeat("x", 200_000)+`"`), ""
	}
	p := newHarness(t)
	denied := 0
	for i := range 10 {
		for _, o := range outcomes(p.settle(p.request(fmt.Sprint("g", i), large))) {
			require.Equal(t, topics.GateDenied, o.Status)
			require.Equal(t, topics.CauseNoRoom, o.Cause)
			denied++
		}
	}
	open := len(p.Read().Open)
	require.Equal(t, 10, open+denied)
	require.Greater(t, open, 2)
	require.Greater(t, denied, 2)
	for i := range open {
		require.Equal(t, topics.GateApproved, outcome(t, p.Handle(p.approve(fmt.Sprint("g", i)))).Status)
	}

	p = newHarness(t, func(c *Config) { c.OpenLimit = 2 })
	p.Handle(p.request("g1"))
	p.Handle(p.request("g2"))
	require.Equal(t, topics.CauseNoRoom, outcome(t, p.settle(p.request("g3"))).Cause)
}

func TestOutcomesAreForgottenBeforeRequestsAreDenied(t *testing.T) {
	p := newHarness(t)
	s := &gaterow.State{Version: rowVersion}
	for i := range maxClosed - 1 {
		s.Closed = append(s.Closed, &gaterow.Gate{Id: fmt.Sprint("g", i), Outcome: &gaterow.Outcome{AtMs: p.Now.UnixMilli()}})
	}
	p.Set(s)
	for i := range 5 {
		id := fmt.Sprint("new", i)
		p.Handle(p.request(id))
		p.Handle(p.approve(id))
		require.Len(t, p.Read().Closed, maxClosed)
	}
	require.Empty(t, p.Handle(p.request("g0")), "a digest of the gate is kept")
	require.Empty(t, p.Handle(p.approve("g0")))
	require.Empty(t, p.Read().Open)
	require.Empty(t, p.Read().Early)
}

func TestLargeAnswersAreNotKept(t *testing.T) {
	p := newHarness(t)
	question := func(r *topics.GateRequest) { r.Kind = topics.GateInput }
	for id, size := range map[string]int{"small": maxKept - 2, "large": maxKept} {
		value := topics.Raw(`"` + strings.Repeat("x", size) + `"`)
		p.Handle(p.request(id, question))
		o := outcome(t, p.Handle(p.decision(id, "d"+id, topics.VerdictAnswer, func(d *topics.GateDecision) { d.Answer = value })))
		require.True(t, bytes.Equal(value, o.Answer), "the outcome has it")
		require.Equal(t, id == "small", findIn(p.Read().Closed, id).Outcome.Answer != nil)
	}
}

func TestHeldRecordsAreBounded(t *testing.T) {
	p := newHarness(t)
	s := &gaterow.State{Version: rowVersion}
	for i := range maxEarly - 1 {
		s.Early = append(s.Early, &gaterow.Held{GateId: fmt.Sprint("g", i), Value: []byte("{}"), ExpiresMs: p.Now.UnixMilli() + 1})
	}
	p.Set(s)
	require.Empty(t, p.Handle(p.approve("last")))
	require.Equal(t, reasonNoRoom, letter(t, p.Handle(p.approve("one more"))))
	require.Len(t, p.Read().Early, maxEarly)

	p = newHarness(t)
	reason := func(d *topics.GateDecision) { d.Reason = strings.Repeat("x", 200_000) }
	for i := range 10 {
		p.Handle(p.approve(fmt.Sprint("g", i), reason))
	}
	require.Less(t, len(p.Read().Early), 6)
	p.config.RowLimit = 64 << 10 // a smaller limit than the row was written with
	es := p.Handle(p.request("g99"))
	require.NotEmpty(t, es, "held records are given up")
}

func TestDescribeShowsNoArguments(t *testing.T) {
	p := newHarness(t)
	p.Handle(p.request("g1"))
	p.Handle(p.request("g2"))
	p.Handle(p.approve("g2", scope(topics.ScopeSession)))
	p.Handle(p.approve("g3"))
	p.Handle(p.withdrawal("g1", topics.CauseParentEnded))
	text := describe(p.Read())
	require.Equal(t, `gate g1: tool "pay", 13 bytes, expires 2026-09-21T14:23:20Z, closing (parent_ended)
gate g2: tool "pay", approved (human) at 2026-09-21T14:13:20Z
early: for gate g3, 99 bytes, expires 2026-09-21T14:23:20Z
grant g2: "pay", expires 2026-09-22T14:13:20Z
remembered: 0
next deadline: 2026-09-21T14:14:20Z
`, text)
	require.Equal(t, "no state\n", describe(nil))
}

func TestDeadlineIsReadWithoutDecodingTheRow(t *testing.T) {
	raw, err := gaterow.Table.Marshal(&gaterow.State{Version: 1, DeadlineMs: 77, TouchedMs: 1})
	require.NoError(t, err)
	ms, ok := rows.Deadline(raw)
	require.True(t, ok)
	require.EqualValues(t, 77, ms)
	_, ok = rows.Deadline(nil)
	require.False(t, ok)
}

// FuzzRow reads arbitrary bytes as a row.
func FuzzRow(f *testing.F) {
	p := newHarness(f)
	p.Handle(p.request("g1"))
	p.Handle(p.request("g2"))
	p.Handle(p.approve("g2", scope(topics.ScopeSession)))
	p.Handle(p.approve("g3"))
	f.Add(p.Row)
	f.Add([]byte{0x10, 0x05})
	f.Add([]byte{0x1a, 0x00}) // a gate of nothing
	f.Add([]byte{0x22, 0x00})
	events := []event{
		p.request("g1"), p.approve("g1"), p.approve("g3"), p.withdrawal("g2", topics.CauseParentEnded),
		p.control(topics.ActionPurge),
		deadlineCame{},
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ms, ok := rows.Deadline(raw)
		s, err := gaterow.Table.Unmarshal(raw)
		if err != nil {
			return
		}
		if ok {
			require.NotZero(t, ms)
		}
		_ = describe(s)
		_ = gates("s1", s)
		for _, e := range events {
			s, err := gaterow.Table.Unmarshal(raw)
			require.NoError(t, err)
			apply(s, p.key, e, func(string) *gaterow.Grants { return nil }, p.Now.Add(time.Hour), p.topics, p.config)
		}
	})
}
