package whole

import (
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// place is where a post went to.
type place struct{ channel, recipient, thread string }

// judge waits until all results are posted, and checks where, how often and in which order.
func (s *handoffWorld) judge() {
	ends := func() int {
		seen := map[string]bool{}
		for _, p := range s.platform.posts() {
			if _, rest, ok := strings.Cut(p.text, "end of "); ok {
				seen[jobIn(rest)] = true
			}
		}
		return len(seen)
	}
	require.Eventually(s.t, func() bool { return ends() == s.delegations }, 6*time.Minute, 50*time.Millisecond,
		"%d of %d results were posted", ends(), s.delegations)

	texts, order := map[string]post{}, map[place][]string{}
	repeated := 0
	for _, p := range s.platform.posts() {
		if before, ok := texts[p.key]; ok {
			require.Equal(s.t, before, p, "two posts have the key %s", p.key)
			repeated++
			continue
		}
		texts[p.key] = p
		at := place{p.channel, p.recipient, p.thread}
		order[at] = append(order[at], p.text)
	}
	acknowledged, results := 0, map[string]int{}
	for at, posts := range order {
		var chunks []string
		for _, text := range posts {
			if text == "working on it" {
				acknowledged++
				continue
			}
			chunks = append(chunks, text)
		}
		// What is not an acknowledgement is the chunks of results, one after the other.
		whole := squeeze(strings.Join(chunks, " "))
		for n := range s.delegations {
			o := s.message(n).Origin
			if (at == place{o.Channel, o.Recipient, o.Thread}) {
				require.Equal(s.t, 1, strings.Count(whole, squeeze(result(job(n)))), "the result of job %d at %v", n, at)
				whole = strings.Replace(whole, squeeze(result(job(n))), "", 1)
				results[job(n)]++
			}
		}
		require.Empty(s.t, whole, "posts that are no results at %v", at)
	}
	require.Equal(s.t, s.delegations, acknowledged)
	require.Len(s.t, results, s.delegations)
	s.judgeStatuses()
	s.t.Logf("%d results in %d places, %d posts, %d repeated with their key", len(results), len(order), len(texts), repeated)
}

// judgeStatuses checks that each delegation has ended once.
func (s *handoffWorld) judgeStatuses() {
	ended := map[string]topics.Delegation{}
	for _, d := range valuesOf(s.world, s.catalog.DelegationStatus) {
		if d.Status == topics.DelegationOpen {
			continue
		}
		id := d.SessionID + " " + d.CallbackID
		if before, ok := ended[id]; ok {
			require.Equal(s.t, before.Status, d.Status, "two ends of %s", id)
			require.Equal(s.t, before.Result, d.Result, "two results of %s", id)
		}
		ended[id] = d
		require.Equal(s.t, topics.DelegationCompleted, d.Status, "%s: %s", id, strconv.Quote(d.Error))
	}
	require.Len(s.t, ended, s.delegations)
}

// squeeze returns a text without the white space at which it may have been divided.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }
