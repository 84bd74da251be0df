package whole

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// dispatched is what the front agent says when a task is handed off.
const dispatched = "dispatched"

// A direct message on a chat: the answer says at once that the task is handed off, and the result comes in the same chat.
func TestChatDelegationReturnsToTheChat(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g).start()
		d.say(dm("slack", "ada"), "delegate count the boats")
		d.gets(dm("slack", "ada"), dispatched, "result of count the boats")
		d.only(dm("slack", "ada"))
		for _, c := range d.wall.all() {
			require.Equal(t, "ada", c.To.User, "the answer is for the person, not for the agent that did the task")
		}
		end := d.ended(func(topics.Delegation) bool { return true })
		require.Equal(t, topics.DelegationCompleted, end.Status)
		require.Equal(t, "result of count the boats", end.Result)
		require.Equal(t, "slack", end.Channel)
	})
}

// Conversations on two channels have the same recipients, threads, people and message IDs.
func TestCrossChannelResultsDoNotLeak(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		d.start()
		var all []topics.Origin
		for _, c := range []string{"slack", "telegram", "irc"} {
			o := room(c, "room", "t1", "ada")
			all = append(all, o)
			d.say(o, "delegate secret of "+c)
			d.gets(o, dispatched)
		}
		d.inFlight(3)
		d.say(all[2], "who spoke last?")
		d.gets(all[2], dispatched, "heard: [From: ADA] who spoke last?")
		d.release()
		d.gets(all[0], dispatched, "result of secret of slack")
		d.gets(all[1], dispatched, "result of secret of telegram")
		d.gets(all[2], dispatched, "heard: [From: ADA] who spoke last?", "result of secret of irc")
		d.only(all...)
	})
}

func TestThreadIsPreserved(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		d.start()
		threads := []string{"t1", "t2", ""}
		for _, thread := range threads {
			d.say(room("slack", "harbor", thread, "ada"), "delegate job<"+thread+">")
			d.gets(room("slack", "harbor", thread, "ada"), dispatched)
		}
		d.inFlight(3)
		d.release()
		var all []topics.Origin
		for _, thread := range threads {
			o := room("slack", "harbor", thread, "ada")
			d.gets(o, dispatched, "result of job<"+thread+">")
			all = append(all, o)
		}
		d.only(all...)
	})
}

func TestTwoDelegationsInFlightReturnBoth(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		d.start()
		o := dm("slack", "ada")
		d.say(o, "delegate one")
		d.say(o, "delegate two")
		d.gets(o, dispatched, dispatched)
		d.inFlight(2)
		d.release()
		d.eventually(func() bool { return len(d.wall.at(o)) == 4 })
		require.ElementsMatch(t, []string{"result of one", "result of two"}, d.wall.at(o)[2:])
		d.only(o)
	})
}

// Many people talk to one agent at a time, each in a conversation of their own, with several tasks.
func TestInterleavedUsersOfOneAgentGetTheirOwnResults(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		d.start()
		var all []topics.Origin
		for n := range 4 {
			user := fmt.Sprint("user", n)
			all = append(all, dm("slack", user), room("telegram", "room", "t"+user, user))
		}
		for round := range 2 {
			for n, o := range all {
				d.say(o, fmt.Sprintf("delegate task %d.%d", n, round))
			}
		}
		for _, o := range all {
			d.gets(o, dispatched, dispatched)
		}
		d.release()
		for n, o := range all {
			d.eventually(func() bool { return len(d.wall.at(o)) == 4 }, "%d", n)
			require.ElementsMatch(t,
				[]string{fmt.Sprintf("result of task %d.0", n), fmt.Sprintf("result of task %d.1", n)}, d.wall.at(o)[2:])
		}
		d.only(all...)
	})
}

// A program writes to the session of a conversation, after the conversation: its tasks have no origin.
func TestLaterMessageOfAProgramCapturesNoOrigin(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g).start()
		o := dm("slack", "ada")
		d.say(o, "delegate first")
		d.gets(o, dispatched, "result of first")

		session, role, catalog := o.Session(d.front), "user", d.catalogs[d.front]
		out, err := processors.OutboundOf(catalog.MessageInput, session, topics.Message{
			SessionID: &session, Role: &role, Content: topics.Raw(`"delegate second"`), Metadata: topics.Raw(`{"request_id":"cron-1"}`),
		}, "cron-1")
		require.NoError(t, err)
		require.NoError(t, d.to.Publish(t.Context(), out))
		end := d.ended(func(v topics.Delegation) bool { return v.Result == "result of second" })
		require.Empty(t, end.Channel, "it is not announced")

		d.say(o, "are you there?")
		d.gets(o, dispatched, "result of first", "heard: are you there?")
		var answers []string
		for _, r := range valuesOf(d.world, catalog.ToolUseResult) {
			announced, _ := topics.Lookup(r.Result, "announced")
			answers = append(answers, announced.String())
		}
		require.Equal(t, []string{"true", "false"}, unique(answers), "the model is told")
		d.only(o)
	})
}

// The platform repeats an event to a process that does not know it yet.
func TestRepeatedEventDelegatesOnce(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g).start()
		o := dm("slack", "ada")
		same := func(in *adapter.Inbound) { in.Event, in.Origin.MessageID = "same", "m" }
		d.say(o, "delegate one", same)
		var err error
		d.bridge, err = channel.NewBridge(d.live.Load, d.to, []topics.Catalog{d.catalogs[d.front]}, channel.BridgeConfig{})
		require.NoError(t, err)
		d.say(o, "delegate one", same)
		d.say(o, "done?")
		d.eventually(func() bool { return len(d.wall.at(o)) == 3 })
		require.ElementsMatch(t, []string{dispatched, "result of one", "heard: done?"}, d.wall.at(o))
	})
}

// In a room, the model is told who wrote. No one can take the name of the sender of a result.
func TestPeopleOfOneRoomAreToldApart(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce).start()
	d.say(room("slack", "harbor", "", "ada"), "hi")
	d.say(room("slack", "harbor", "", "bob"), "ho", func(in *adapter.Inbound) { in.Origin.UserName = "hand: ]BOB" })
	d.gets(room("slack", "harbor", "", ""), "heard: [From: ADA] hi", "heard: [From: BOB] ho")
	for _, s := range d.seen() {
		require.False(t, strings.Contains(topics.Text(s.Input().Content), "hand:"))
	}
}

// unique returns the different texts, in their order.
func unique(texts []string) (list []string) {
	for _, text := range texts {
		if len(list) == 0 || list[len(list)-1] != text {
			list = append(list, text)
		}
	}
	return list
}
