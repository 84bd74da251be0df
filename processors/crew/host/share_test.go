package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// sharing is an outbox in a bubble, which ends with the test.
func sharing(t *testing.T) (o *outbox, out *written) {
	catalog, err := topics.For("harbor")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	out = &written{}
	o = &outbox{
		to: out, topics: catalog, from: "host/h1", batchTime: time.Millisecond, logger: zap.NewNop(), ctx: ctx,
		hurried: make(chan struct{}), boxes: map[string]*box{}, number: testEpoch * mailbox.PerEpoch,
	}
	t.Cleanup(func() {
		cancel()
		o.running.Wait()
	})
	return o, out
}

// pour queues updates of so many MiB without waiting for them.
func pour(o *outbox, subject string, mib int) {
	raw := topics.Raw(`"` + strings.Repeat("y", 4<<10-2) + `"`)
	o.running.Go(func() {
		for range mib << 8 {
			_ = o.put(o.ctx, subject, item{update: &update{run: "r", session: "s", raw: raw}, size: len(raw)})
		}
	})
}

// poured is how many KiB of updates of a row were written, and the number of the last record.
func (w *written) poured(t *testing.T, subject string) (kib int, last int64) {
	for _, r := range w.all() {
		if r.key == mailbox.ID(subject) && r.in.Kind == (crewbody.Updates{}).Kind() {
			u, err := crewbody.Decode[crewbody.Updates](r.in.Body)
			require.NoError(t, err)
			kib, last = kib+4*len(u.Updates), r.in.Number
		}
	}
	return kib, last
}

func TestUpdatesOfAnAgentAreWrittenAtItsShareOfTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, out := sharing(t)
		flooding, other := mailbox.Agent("a"), mailbox.Agent("b")
		pour(o, flooding, 8)
		time.Sleep(100 * time.Millisecond)
		kib, _ := out.poured(t, flooding)
		require.InDelta(t, 2<<10, kib, 400)
		require.NoError(t, o.put(o.ctx, other, item{body: crewbody.TurnEnded{Run: "r"}}))
		pour(o, other, 1)
		time.Sleep(50 * time.Millisecond)
		kib, _ = out.poured(t, other)
		require.Equal(t, 1<<10, kib, "another agent has a share of its own")
		time.Sleep(2 * time.Second)
		kib, _ = out.poured(t, flooding)
		require.InDelta(t, 6<<10, kib, 600)
		time.Sleep(2 * time.Second)
		kib, _ = out.poured(t, flooding)
		require.Equal(t, 8<<10, kib)
	})
}

func TestUpdatesWaitForTheRowThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, out := sharing(t)
		subject := mailbox.Agent("a")
		pour(o, subject, 1)
		time.Sleep(time.Second)
		_, last := out.poured(t, subject)
		o.heard(subject, last) // the row is alive
		pour(o, subject, 8)
		time.Sleep(10 * time.Second)
		kib, last := out.poured(t, subject)
		require.InDelta(t, 3<<10, kib, 200, "what is on the topic and not applied is bounded")
		o.heard(subject, last)
		time.Sleep(2 * time.Second)
		kib, _ = out.poured(t, subject)
		require.InDelta(t, 5<<10, kib, 400)
		time.Sleep(unheardFor) // the row was deleted, or cannot be decoded
		kib, _ = out.poured(t, subject)
		require.Greater(t, kib, 6<<10)
	})
}

func TestRowTellsTheHostWhatItHasApplied(t *testing.T) {
	r := newRig(t, []string{"true"})
	subject := mailbox.Agent(agentID)
	r.h.out.admit(subject, 1)
	r.h.out.sent(subject, 7, item{body: crewbody.Updates{}, size: 1})
	raw, err := agent.Table.Marshal(&agent.State{Mailbox: &mailbox.Mailbox{Heard: map[string]int64{"host/h1": 6}}})
	require.NoError(t, err)
	r.h.onRow(processors.Inbound{Topic: string(goka.GroupTable(r.h.catalog.CrewAgentsGroup())), Key: []byte(agentID), Value: raw})
	require.EqualValues(t, 6, r.h.out.share(subject).heard)
}

func TestHostThatEndsWritesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, out := sharing(t)
		pour(o, mailbox.Agent("a"), 5)
		time.Sleep(10 * time.Millisecond)
		close(o.hurried)
		time.Sleep(10 * time.Millisecond)
		kib, _ := out.poured(t, mailbox.Agent("a"))
		require.Equal(t, 5<<10, kib)
	})
}
