package turns

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// The timeout and the interval of polls that wait for a broker.
const (
	wait = 4 * time.Minute
	poll = 20 * time.Millisecond
)

func wires() []fault {
	var rows []fault
	both := processors.Guarantee("")
	for _, r := range []struct {
		key  kmsg.Key
		only processors.Guarantee
		long bool
	}{
		{key: kmsg.Produce, only: both, long: true},
		{key: kmsg.AddPartitionsToTxn, only: processors.ExactlyOnce, long: true},
		{key: kmsg.AddOffsetsToTxn, only: processors.ExactlyOnce, long: true},
		{key: kmsg.TxnOffsetCommit, only: processors.ExactlyOnce, long: true},
		{key: kmsg.EndTxn, only: processors.ExactlyOnce},
		{key: kmsg.OffsetCommit, only: processors.AtLeastOnce, long: true},
		{key: kmsg.Heartbeat, only: both, long: true},
		{key: kmsg.Fetch, only: both, long: true},
	} {
		every, nth := "7th", int32(7)
		if r.key == kmsg.OffsetCommit { // there is but one a cut
			every, nth = "3rd", 3
		}
		rows = append(rows, fault{
			name: fmt.Sprintf("connection lost before every %s response to %s", every, r.key.Name()), only: r.only, long: r.long,
			play: func(f *field) { answersLost(f, r.key, nth) },
		})
	}
	return rows
}

func answersLost(f *field, key kmsg.Key, nth int32) {
	var seen, lost atomic.Int32
	_, addrs := newTap(f, f.brokers, func(r request) verdict {
		if r.Key == key && r.answered && seen.Add(1)%nth == 0 {
			lost.Add(1)
			return cutOff
		}
		return pass
	})
	f.start("a", func(c *config) { c.brokers = addrs })
	f.ask()
	f.answered(10)
	require.Eventually(f, func() bool { return int(lost.Load()) >= rounds }, wait, poll,
		"%s: %v answers seen, %v lost", key.Name(), &seen, &lost)
	f.answered(10)
	f.figure("%d responses lost", lost.Load())
}

func records() []fault {
	return []fault{
		{name: "poison on every input", play: poison},
		{name: "records over the size limit", play: oversize, long: true},
		{name: "clock jumps of an hour forward and back", play: clockJumps, anyEnd: true},
	}
}

func (f *field) driver() *wiretest.Driver {
	f.Helper()
	d, err := wiretest.NewDriver(f.ctx, f.brokers, f.agent, wiretest.WithLedger(f.ledger))
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, d.Close()) })
	return d
}

func poison(f *field) {
	f.start("a")
	f.ask()
	f.answered(5)
	d, sent := f.driver(), 0
	for n, topic := range d.Names().Inputs() {
		for _, bad := range wiretest.Malformed(d.Names(), topic, fmt.Sprintf("poison-%d", n)) {
			_, err := d.Send(f.ctx, bad.Record, bad.Expected)
			require.NoError(f, err)
			sent++
		}
	}
	f.answered(5)
	f.figure("%d bad records", sent)
}

func oversize(f *field) {
	f.start("a")
	f.ask()
	f.answered(5)
	d := f.driver()
	bulk := "\n" + strings.Repeat("0123456789", 70_000)
	may := wiretest.Sent{Fate: wiretest.FateTurn, Case: "oversized", Codes: []string{"", "too_large"}}
	for n, plan := range []wiretest.Plan{
		{Steps: 1, Tools: 3, Deeds: []wiretest.Deed{wiretest.DeedHuge, wiretest.DeedHuge, wiretest.DeedOK}},
		{Pad: 700_000},
		{},
		{},
	} {
		plan.Key = fmt.Sprintf("huge.%d", n)
		text := plan.Text()
		if n >= 2 {
			text += bulk
		}
		_, err := d.Say(f.ctx, wiretest.Say{Session: fmt.Sprintf("huge-%d", n), Text: text}, may)
		require.NoError(f, err)
	}
	f.answered(10)
}

func clockJumps(f *field) {
	i := f.start("a")
	f.ask()
	f.answered(5)
	for _, by := range slices.Repeat([]time.Duration{time.Hour, -time.Hour, -time.Hour, time.Hour}, 1+rounds/4) {
		i.jump(f.T, by)
		f.answered(5)
	}
	f.kills++
	i.kill(f.T) // the next instance has the right clock
	f.start("a")
	f.answered(5)
	f.figure("%d ended by their deadline", f.load.Progress().Failed)
}
