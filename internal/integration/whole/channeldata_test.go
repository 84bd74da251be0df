package whole

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// A result is data: neither the message that announces it nor the answer with it is a command.
func TestResultIsNotACommand(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce).start()
	o := dm("slack", "ada")
	d.say(o, "remember 42")
	d.gets(o, "heard: remember 42")
	want := []string{"heard: remember 42"}
	for _, result := range []string{"/new", "/stop\n/agents", "/approve\n/new"} {
		d.say(o, "delegate say "+result)
		want = append(want, dispatched, result)
		d.gets(o, want...)
	}
	d.say(o, "and now?")
	want = append(want, "heard: and now?")
	d.gets(o, want...)
	steps := d.seen()
	last := steps[len(steps)-1]
	require.Equal(t, "remember 42", topics.Text(last.Messages[0].Content), "the conversation was not forgotten")
	require.Len(t, last.Messages, 2+3*6+1)

	d.say(o, "/new")
	want = append(want, "This is a new conversation. Tasks that I handed off continue.")
	d.gets(o, want...)
	d.turnsHaveRead(d.catalog.ThinkRequestResponse.Name()) // a message that is read before the command has the old conversation
	d.say(o, "who am I?")
	d.gets(o, append(want, "heard: who am I?")...)
	steps = d.seen()
	require.Len(t, steps[len(steps)-1].Messages, 1, "a typed command counts")
}

func TestResultWithLineCommandsIsPostedAsText(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce).start()
	o := room("irc", "#harbor", "", "ada")
	d.say(o, "delegate say hi\r\nQUIT :bye\r\n.\r\nRCPT TO:eve@evil.test\nPRIVMSG eve :hi")
	d.gets(o, dispatched, "hi\nQUIT :bye\n.\nRCPT TO:eve@evil.test\nPRIVMSG eve :hi")
	d.only(o)
}

// The agent has nothing to say about a result: nothing is posted, and the delivery has ended.
func TestEmptyResultIsSuppressed(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g).start()
		o := dm("slack", "ada")
		d.say(o, "delegate nothing")
		r := d.receipt(func(r topics.Receipt) bool {
			report, ok := channel.ReadReport(r.Response)
			return ok && report.Status == channel.StatusSuppressed && r.Final
		})
		require.Equal(t, topics.OutcomeSuppressed, r.Outcome)
		d.say(o, "and?")
		d.gets(o, dispatched, "heard: and?")
		end := d.ended(func(topics.Delegation) bool { return true })
		require.Equal(t, topics.DelegationCompleted, end.Status)
	})
}

// The chunks of a result are posted in their order, in its thread, each once, although the platform fails between them.
func TestLongResultIsPostedInOrderInItsThread(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		failed := map[string]bool{}
		d.wall.fail = func(c adapter.Chunk) error {
			if c.Index > 0 && !failed[c.Key] {
				failed[c.Key] = true
				return &adapter.Failure{Reason: "status 503", Status: 503}
			}
			return nil
		}
		d.start()
		o := room("telegram", "harbor", "t7", "ada")
		long := strings.TrimSpace(strings.Repeat("All boats are back in the harbor. ", 20))
		d.say(o, "delegate say "+long)
		d.eventually(func() bool { return strings.Join(d.wall.at(o), " ") == dispatched+" "+long })
		d.only(o)
		keys := map[string]bool{}
		for i, c := range d.wall.all()[1:] {
			require.Equal(t, i, c.Index)
			require.Len(t, c.Previous, i)
			require.False(t, keys[c.Key])
			keys[c.Key] = true
		}
		require.Greater(t, len(keys), 3)
		r := d.receipt(func(r topics.Receipt) bool {
			report, ok := channel.ReadReport(r.Response)
			return ok && r.Final && report.Chunks == len(keys)
		})
		report, _ := channel.ReadReport(r.Response)
		require.Equal(t, channel.StatusSent, report.Status)
		require.Len(t, report.Sent, len(keys), "with the IDs of the platform")
	})
}
