package channel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

func TestMessageCarriesItsOrigin(t *testing.T) {
	r := newRig(t, nil, BridgeConfig{})
	in := direct("U1", "Is berth 4 free?")
	in.At = noon.Add(-time.Second)
	m := r.message("front", r.receive(in))
	require.Equal(t, in.Origin, m.origin)
	require.Equal(t, in.Origin.Session("front"), m.Key)
	require.Equal(t, m.Key, *m.SessionID)
	require.Equal(t, "user", *m.Role)
	require.Equal(t, "slack/main/U1", *m.UserID)
	require.Equal(t, "Is berth 4 free?", m.content)
	require.Equal(t, topics.Timestamp(in.At), *m.Timestamp)
	require.Empty(t, m.prompt)
	_, ok := topics.Lookup(m.Metadata, topics.MetaPrompt)
	require.False(t, ok)

	in = group("C1", "U2", "hello")
	m = r.message("front", r.receive(in))
	require.Equal(t, "[From: Name of U2] hello", m.content)
	require.Equal(t, topics.Timestamp(noon), *m.Timestamp)
	require.Nil(t, r.message("front", r.receive(direct("", "hello"))).UserID)
	m = r.message("ops", r.receive(group("C7", "U2", "hello there")))
	require.Equal(t, m.origin.Session("ops"), m.Key)
}

// Two people who write by turns to one agent: each message has its own origin and session.
func TestTwoUsersOfOneAgentHaveSessionsOfTheirOwn(t *testing.T) {
	r := newRig(t, nil, BridgeConfig{})
	keys := map[string]string{}
	for i := range 4 {
		for _, user := range []string{"U1", "U2"} {
			m := r.message("front", r.receive(direct(user, fmt.Sprint("message ", i))))
			require.Equal(t, user, m.origin.User)
			require.Equal(t, "D-"+user, m.origin.Recipient)
			if i > 0 {
				require.Equal(t, keys[user], m.Key, "a person's messages continue one session")
			}
			keys[user] = m.Key
		}
	}
	require.NotEqual(t, keys["U1"], keys["U2"])
	inThread := direct("U1", "in a thread")
	inThread.Origin.Thread = "t1"
	require.NotEqual(t, keys["U1"], r.message("front", r.receive(inThread)).Key)
}

func TestThreadingStartsAThread(t *testing.T) {
	r := newRig(t, func(a *Account) { a.Threading = true }, BridgeConfig{})
	m := r.message("front", r.receive(group("C1", "U1", "hello")))
	require.Equal(t, "m1", m.origin.Thread)
	answer := group("C1", "U2", "and tomorrow?")
	answer.Origin.Thread, answer.Origin.MessageID = "m1", "m2"
	require.Equal(t, m.Key, r.message("front", r.receive(answer)).Key)
	_, origin := r.reply("front", r.receive(group("C1", "U1", "/status")))
	require.Equal(t, "m1", origin.Thread, "replies go to the thread too")
}

func TestOverridePromptTravelsWithTheMessage(t *testing.T) {
	r := newRig(t, func(a *Account) { a.Prompt = "Answer\n\"briefly\"." }, BridgeConfig{})
	m := r.message("front", r.receive(direct("U1", "one")))
	require.Equal(t, "Answer\n\"briefly\".", m.prompt)
	require.Equal(t, "one", m.content, "it is not part of the message")

	changed := *r.settings
	changed.Accounts = []Account{{Channel: "slack", Name: "main", Prompt: "Answer fully."}}
	r.settings = &changed
	require.Equal(t, "Answer fully.", r.message("front", r.receive(direct("U1", "two"))).prompt, "the settings are live")
}

// everything is an event for each kind of record.
func everything() []adapter.Inbound {
	button := direct("U1", "")
	button.Event, button.Decision = "pressed", &adapter.Decision{GateID: "g1", Approve: true}
	long := direct("U1", "long")
	long.Text = strings.Repeat("long ", 20_000)
	return []adapter.Inbound{
		direct("U1", "hello"), group("C1", "U1", "hello"), direct("U1", "/stop"), direct("U1", "/new"), direct("U1", "/status"),
		direct("U1", "/agents"), direct("U1", "/approve 12ab34cd"), direct("U1", "/deny"), button,
		long,
	}
}

func TestRepeatedEventsHaveTheSameIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range everything() {
		first, restarted := newRig(t, nil, BridgeConfig{}), newRig(t, nil, BridgeConfig{})
		restarted.clock.Advance(time.Hour)
		a, b := first.receive(in), restarted.receive(in)
		require.NotEmpty(t, a)
		require.Equal(t, topicsOf(a), topicsOf(b))
		for i := range a {
			require.True(t, strings.HasPrefix(id(a[i]), in.Origin.EventID(in.Event)+"/"))
			require.Equal(t, id(a[i]), id(b[i]))
			require.Equal(t, a[i].Key, b[i].Key)
			require.False(t, seen[id(a[i])], "each record has its own ID")
			seen[id(a[i])] = true
		}
		require.Empty(t, first.receive(in), "a repeat in the same process writes nothing")
		require.Equal(t, counted{Repeat, ""}, first.counted()[1])
	}
}

// Whatever record cannot be written: the event is not handled, and its repeat writes all records.
func TestEventIsHandledWhenAllItsRecordsAreWritten(t *testing.T) {
	for _, in := range everything() {
		whole := newRig(t, nil, BridgeConfig{}).receive(in)
		for fail := range whole {
			r, down := newRig(t, nil, BridgeConfig{}), errors.New("no broker")
			n := 0
			r.to.fail = func(processors.Outbound) error {
				if n++; n > fail {
					return down
				}
				return nil
			}
			err := r.Receive(t.Context(), in)
			require.ErrorIs(t, err, down)
			require.NotContains(t, err.Error(), "hello")
			require.Empty(t, r.counted())
			r.to.fail = nil
			r.to.take()
			again := r.receive(in)
			require.Equal(t, topicsOf(whole), topicsOf(again))
			for i := range whole {
				require.Equal(t, id(whole[i]), id(again[i]))
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newRig(t, nil, BridgeConfig{}).Receive(ended, direct("U1", "hello")), context.Canceled)
}

// A repeat after an error is not counted for the rate limit, and is passed on.
func TestRepeatAfterAnErrorIsNotLimited(t *testing.T) {
	r := newRig(t, func(a *Account) { a.RateLimit = 1 }, BridgeConfig{})
	down := errors.New("no broker")
	r.to.fail = func(processors.Outbound) error { return down }
	for range 3 {
		require.ErrorIs(t, r.Receive(t.Context(), direct("U1", "hello")), down)
	}
	r.to.fail = nil
	r.message("front", r.receive(direct("U1", "hello")))
	r.to.fail = func(processors.Outbound) error { return down }
	require.ErrorIs(t, r.Receive(t.Context(), direct("U1", "more")), down)
	r.to.fail = nil
	text, _ := r.reply("front", r.receive(direct("U1", "more")))
	require.Contains(t, text, "too fast")
}

func TestRateLimitIsPerPerson(t *testing.T) {
	r := newRig(t, func(a *Account) { a.RateLimit = 2 }, BridgeConfig{})
	for _, text := range []string{"one", "two"} {
		r.message("front", r.receive(direct("U1", text)))
	}
	text, origin := r.reply("front", r.receive(direct("U1", "three")))
	require.Contains(t, text, "too fast")
	require.Equal(t, direct("U1", "").Origin, origin)
	require.Empty(t, r.receive(direct("U1", "four")), "told once")
	r.message("front", r.receive(direct("U2", "one")))
	require.Equal(t, counted{Refuse, TooMany}, r.counted()[3])
	r.clock.Advance(span)
	r.message("front", r.receive(direct("U1", "five")))
}

func TestRememberedPeopleAreBounded(t *testing.T) {
	r := newRig(t, func(a *Account) { a.RateLimit = 1 }, BridgeConfig{People: 2, RecentEvents: 1})
	for _, user := range []string{"U1", "U2", "U3"} {
		r.message("front", r.receive(direct(user, "one")))
	}
	r.reply("front", r.receive(direct("U3", "two")))
	r.reply("front", r.receive(direct("U2", "two")))
	r.message("front", r.receive(direct("U1", "two"))) // who was quiet for longest is forgotten
	require.Len(t, r.receive(direct("U3", "two")), 1, "an event that is forgotten is written again, with the same ID")
}

func TestRefusedEventsWriteNothing(t *testing.T) {
	r := newRig(t, func(a *Account) { a.DM = DMIgnore }, BridgeConfig{})
	in := group("C1", "U1", "secret-text")
	in.Mentioned = false
	require.Empty(t, r.receive(in))
	require.Empty(t, r.receive(direct("U1", "secret-text")))
	in = direct("U1", "secret-text")
	in.Origin.Account = "other"
	require.Empty(t, r.receive(in))
	r.settings.DefaultAgent = "unserved"
	require.Empty(t, r.receive(group("C1", "U1", "secret-text, addressed")))
	require.Equal(t, []counted{
		{Refuse, GroupNoMention},
		{Refuse, DMIgnored},
		{Refuse, NoAccount},
		{Refuse, NoAgent},
	}, r.counted())
	require.Equal(t, 4, r.logs.Len())
	for _, line := range r.logs.All() {
		require.NotContains(t, fmt.Sprint(line), "secret-text")
		require.NotContains(t, fmt.Sprint(line), "U1")
	}
	require.Len(t, r.logs.FilterMessageSnippet("the settings do not provide for it").All(), 2)
}

// A platform may send one message twice, first without a mention, which a policy refuses, and then with it. A refused event has
// no records to repeat, so it must not make the second one a repeat.
func TestEventThatWasRefusedIsJudgedAgain(t *testing.T) {
	r := newRig(t, nil, BridgeConfig{})
	in := group("C1", "U1", "hello")
	in.Mentioned = false
	require.Empty(t, r.receive(in))
	in.Mentioned = true
	r.message("front", r.receive(in))
	require.Empty(t, r.receive(in), "now it is a repeat")
}

// Someone who chooses the ID of their event, such as the Message-ID of an e-mail, cannot make the event of another one a repeat.
func TestEventOfAnotherPersonIsNoRepeat(t *testing.T) {
	r := newRig(t, nil, BridgeConfig{})
	mine, theirs := direct("U1", "hello"), direct("U2", "hello")
	theirs.Event = mine.Event
	r.message("front", r.receive(mine))
	r.message("front", r.receive(theirs))
}

func TestEventsAreReceivedConcurrently(t *testing.T) {
	r := newRig(t, func(a *Account) { a.RateLimit = 5 }, BridgeConfig{People: 3})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				if err := r.Receive(context.Background(), direct(fmt.Sprint("U", i%4), fmt.Sprint(i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Len(t, r.counted(), 160)
}

func TestNewRejectsOptionsAndCatalogs(t *testing.T) {
	live, to := Fixed(&Settings{}), &fakePublisher{}
	plain, err := topics.For("plain")
	require.NoError(t, err)
	good := []topics.Catalog{catalog(t, "front")}
	for want, build := range map[string]func() (*Bridge, error){
		"lack settings": func() (*Bridge, error) { return NewBridge(nil, to, good, BridgeConfig{}) },
		"a publisher":   func() (*Bridge, error) { return NewBridge(live, nil, good, BridgeConfig{}) },
		"a catalog":     func() (*Bridge, error) { return NewBridge(live, to, nil, BridgeConfig{}) },
		"WithChannels": func() (*Bridge, error) {
			return NewBridge(live, to, []topics.Catalog{plain}, BridgeConfig{})
		},
		"repeated": func() (*Bridge, error) {
			return NewBridge(live, to, append(good, good...), BridgeConfig{})
		},
		"MaxText": func() (*Bridge, error) {
			return NewBridge(live, to, good, BridgeConfig{MaxText: -1})
		},
		"People": func() (*Bridge, error) {
			return NewBridge(live, to, good, BridgeConfig{People: -1})
		},
		"RecentEvents": func() (*Bridge, error) {
			return NewBridge(live, to, good, BridgeConfig{RecentEvents: -1})
		},
	} {
		_, err := build()
		require.ErrorIs(t, err, ErrConfig, want)
		require.ErrorContains(t, err, want)
	}
}
