package worker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var admissionStart = time.UnixMilli(1_790_000_000_000)

func slotsOf(bucket string, n int) need { return need{Bucket: bucket, Concurrency: n} }

func perMinute(bucket string, n, burst, cost float64) need {
	return need{Bucket: bucket, Rate: n / 60, Burst: burst, Cost: cost}
}

// admissionSteps drives a state and notes the calls that begin, by name.
type admissionSteps struct {
	state *admission
	now   time.Time
	names map[callID]string
	ids   map[string]callID
	begun []string
}

func newAdmissionSteps() *admissionSteps {
	return &admissionSteps{state: newAdmission(), now: admissionStart, names: map[callID]string{}, ids: map[string]callID{}}
}

// ask adds calls of a session, whose names are the session's with a number.
func (s *admissionSteps) ask(session string, n int, needs ...need) {
	for range n {
		id := s.state.Ask(session, needs, s.now)
		name := fmt.Sprint(session, len(s.ids))
		s.names[id], s.ids[name] = name, id
	}
	s.admit()
}

func (s *admissionSteps) admit() {
	for _, id := range s.state.Admit(s.now) {
		s.begun = append(s.begun, s.names[id])
	}
}

func (s *admissionSteps) leave(names ...string) {
	for _, name := range names {
		s.state.Leave(s.ids[name], s.now)
		s.admit()
	}
}

func (s *admissionSteps) after(d time.Duration) {
	s.now = s.now.Add(d)
	s.admit()
}

func TestAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*admissionSteps)
		want []string
	}{
		"calls within the concurrency begin in their order": {func(s *admissionSteps) {
			s.ask("a", 3, slotsOf("all", 2))
			s.leave("a1")
		}, []string{"a0", "a1", "a2"}},
		"a full bucket does not hold up calls of another one, not even of the session": {func(s *admissionSteps) {
			s.ask("a", 2, slotsOf("hung", 1), slotsOf("all", 4))
			s.ask("a", 2, slotsOf("other", 2), slotsOf("all", 4))
		}, []string{"a0", "a2", "a3"}},
		"a call that waits holds nothing": {func(s *admissionSteps) {
			s.ask("a", 2, slotsOf("hung", 1), slotsOf("tenant", 2))
			s.ask("b", 1, slotsOf("other", 1), slotsOf("tenant", 2))
		}, []string{"a0", "b2"}},
		"the next slot is for the session that runs nothing": {func(s *admissionSteps) {
			s.ask("a", 5, slotsOf("all", 2))
			s.ask("b", 1, slotsOf("all", 2))
			s.leave("a0", "a1")
		}, []string{"a0", "a1", "b5", "a2"}},
		"of sessions whose turn it is, the one that runs fewer calls is next": {func(s *admissionSteps) {
			s.ask("a", 1, slotsOf("all", 3))
			s.ask("a", 1, slotsOf("all", 3))
			s.ask("b", 2, slotsOf("all", 3))
			s.ask("a", 1, slotsOf("all", 3))
			s.leave("b2")
		}, []string{"a0", "a1", "b2", "b3"}},
		"units that are returned do not exceed the burst": {func(s *admissionSteps) {
			s.ask("a", 1, perMinute("tokens", 60, 2, 1))
			s.state.Take("tokens", -100, s.now)
			s.ask("a", 3, perMinute("tokens", 60, 2, 1))
		}, []string{"a0", "a1", "a2"}},
		"sessions take turns at a rate": {func(s *admissionSteps) {
			s.ask("a", 5, perMinute("model", 60, 1, 1))
			s.leave("a0")
			s.ask("b", 2, perMinute("model", 60, 1, 1))
			for range 5 {
				s.after(time.Second)
			}
		}, []string{"a0", "b5", "a1", "b6", "a2", "a3"}},
		"new sessions do not starve one that waits": {func(s *admissionSteps) {
			s.ask("a", 3, slotsOf("all", 1))
			s.ask("b", 1, slotsOf("all", 1))
			s.ask("c", 1, slotsOf("all", 1))
			s.leave("a0")
			s.ask("d", 1, slotsOf("all", 1))
			s.leave("b3")
			s.ask("e", 1, slotsOf("all", 1))
			s.leave("c4")
			s.ask("f", 1, slotsOf("all", 1))
			s.leave("a1")
		}, []string{"a0", "b3", "c4", "a1", "d5"}},
		"a rate admits the burst and then one call per unit": {func(s *admissionSteps) {
			s.ask("a", 5, perMinute("model", 30, 2, 1))
			s.after(1999 * time.Millisecond)
			s.after(time.Millisecond)
			s.after(4 * time.Second)
		}, []string{"a0", "a1", "a2", "a3", "a4"}},
		"a call that takes more than there is delays the following calls": {func(s *admissionSteps) {
			s.ask("a", 1, perMinute("tokens", 60, 10, 25))
			s.ask("b", 1, perMinute("tokens", 60, 10, 1))
			s.after(15 * time.Second)
			require.Equal(t, []string{"a0"}, s.begun)
			s.after(time.Second)
		}, []string{"a0", "b1"}},
		"units that a call did not use are returned": {func(s *admissionSteps) {
			s.ask("a", 1, perMinute("tokens", 60, 10, 25))
			s.ask("b", 1, perMinute("tokens", 60, 10, 1))
			s.state.Take("tokens", -20, s.now)
			s.admit()
		}, []string{"a0", "b1"}},
		"a pause holds up the calls of its bucket only, until it ends": {func(s *admissionSteps) {
			s.state.Pause("one", s.now.Add(time.Minute), s.now)
			s.state.Pause("one", s.now.Add(time.Second), s.now)
			s.ask("a", 1, slotsOf("one", 0))
			s.ask("a", 1, slotsOf("two", 0))
			s.after(time.Minute - 1)
			require.Equal(t, []string{"a1"}, s.begun)
			s.after(1)
		}, []string{"a1", "a0"}},
		"a call that gave up does not begin": {func(s *admissionSteps) {
			s.ask("a", 3, slotsOf("all", 1))
			s.leave("a1", "a0")
			s.leave("a1")
		}, []string{"a0", "a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAdmissionSteps()
			c.do(s)
			require.Equal(t, c.want, s.begun)
		})
	}
}

func TestNextIsWhenTimeAloneLetsACallBegin(t *testing.T) {
	s := newAdmissionSteps()
	_, ok := s.state.Next(s.now)
	require.False(t, ok, "no call waits")
	s.ask("a", 2, slotsOf("all", 1))
	_, ok = s.state.Next(s.now)
	require.False(t, ok, "another call must end first")
	s.ask("b", 3, perMinute("model", 6, 1, 1))
	at, ok := s.state.Next(s.now)
	require.True(t, ok)
	require.Equal(t, 10*time.Second, at.Sub(s.now))
	s.state.Pause("model", s.now.Add(time.Minute), s.now)
	at, _ = s.state.Next(s.now)
	require.Equal(t, time.Minute, at.Sub(s.now))
	s.after(time.Minute)
	require.Equal(t, []string{"a0", "b2", "b3"}, s.begun)
}

func TestUnusedBucketsAndSessionsAreForgotten(t *testing.T) {
	s := newAdmissionSteps()
	for i := range 10_000 {
		s.ask(fmt.Sprint("s", i), 1, slotsOf(fmt.Sprint("key", i), 1), perMinute(fmt.Sprint("rate", i), 60, 1, 1))
		s.leave(s.begun[i])
		s.after(time.Millisecond)
	}
	require.Empty(t, s.state.sessions)
	require.Empty(t, s.state.running)
	require.LessOrEqual(t, len(s.state.buckets), 2*1000+minSweep, "a bucket of a second ago is full again")
}
