package wiretest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// broker starts an embedded cluster with the topics of an agent.
func broker(t testing.TB, agent string, partitions int32) []string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	require.NoError(t, CreateTopics(t.Context(), cluster.ListenAddrs(), agent, partitions))
	return cluster.ListenAddrs()
}

func deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	t.Cleanup(stop)
	return ctx
}

func TestCorrectPipelineHasNoViolationsUnderAttack(t *testing.T) {
	for _, partitions := range []int32{1, 4} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			t.Parallel()
			bootstrap := broker(t, "agent", partitions)
			startReference(t, bootstrap, "agent", reference{thinkTimeout: time.Minute, toolTimeout: time.Minute})
			themes, codes := Themes(), []string{"think_failed", "cancelled", "too_large"}
			reasons := []string{"invalid_tool_call", "tool_failed", "too_large"}
			if partitions == 1 { // the large records are sent in one of the two subtests only
				themes = slices.DeleteFunc(themes, func(theme Theme) bool { return theme == ThemeOversize })
				codes, reasons = codes[:2], reasons[:2]
			}
			r := Attack(deadline(t, 5*time.Minute), t, bootstrap, "agent", Options{
				Seed: uint64(partitions), Sessions: len(themes), Turns: 3, Themes: themes, WaitLimit: time.Minute,
			})
			require.True(t, r.Kept())
			require.Zero(t, r.Counts.Repeats)
			require.Zero(t, r.Counts.UsedAndDead)
			for _, code := range codes {
				require.Positive(t, r.Counts.Codes[code], code)
			}
			for _, reason := range reasons {
				require.Positive(t, r.Counts.Synthesised[reason], reason)
			}
			require.Positive(t, r.Counts.Routed)
			require.Positive(t, r.Counts.DeadLetters)
		})
	}
}

func TestSilentWorkersAreEndedByDeadlines(t *testing.T) {
	bootstrap := broker(t, "agent", 2)
	startReference(t, bootstrap, "agent", reference{thinkTimeout: 2 * time.Second, toolTimeout: time.Second})
	r := Attack(deadline(t, 5*time.Minute), t, bootstrap, "agent", Options{
		Seed: 1, Sessions: 2, Themes: []Theme{ThemeSilence}, WaitLimit: time.Minute,
	})
	require.True(t, r.Kept())
	require.Equal(t, map[string]int{"think_timeout": 4}, r.Counts.Codes)
	require.Positive(t, r.Counts.Synthesised["timeout"])
}

// The flaws of a broken pipeline.
const (
	flawDrop           flaw = "loses outputs"
	flawOtherID        flaw = "repeats outputs under another turn's id"
	flawTwice          flaw = "answers twice"
	flawRepeatBytes    flaw = "repeats outputs with other bytes"
	flawRepeat         flaw = "repeats outputs"
	flawText           flaw = "changes answers"
	flawCode           flaw = "invents codes"
	flawNulls          flaw = "writes nulls to message-output"
	flawNoHeader       flaw = "omits ids"
	flawWrongPartition flaw = "writes under another key"
	flawRoute          flaw = "loses routes"
	flawRequest        flaw = "loses request ids"
	flawHistory        flaw = "loses the start of the history"
	flawHistoryBytes   flaw = "re-encodes the history"
	flawCost           flaw = "computes wrong costs"
	flawBlanks         flaw = "writes white space"
	flawOrder          flaw = "answers the last message first"
	flawSwap           flaw = "swaps results"
	flawLoseResult     flaw = "loses results"
	flawLoseCall       flaw = "loses calls"
	flawResult         flaw = "invents results"
	flawNoSet          flaw = "omits complete sets"
	flawTwoMessages    flaw = "writes tool messages twice"
	flawAcceptAgain    flaw = "accepts repeated responses"
	flawNoLetter       flaw = "loses rejected records"
	flawRefuse         flaw = "rejects valid messages"
	flawLetterBytes    flaw = "truncates dead letters"
)

func TestEveryFlawOfAPipelineIsReported(t *testing.T) {
	cases := []struct {
		flaw  flaw
		theme Theme
		rules []Rule // all of these must be reported
		once  bool
	}{
		{flaw: flawDrop, theme: ThemeNamed, rules: []Rule{RuleNoOutput}},
		{flaw: flawOtherID, theme: ThemeCalm, rules: []Rule{RuleAlienOutput}},
		{flaw: flawTwice, theme: ThemeCalm, rules: []Rule{RuleTwoOutputs}},
		{flaw: flawRepeatBytes, theme: ThemeCalm, rules: []Rule{RuleRepeat}},
		{flaw: flawRepeat, theme: ThemeCalm, rules: []Rule{RuleAgain}, once: true},
		{flaw: flawText, theme: ThemeCalm, rules: []Rule{RuleAnswer}},
		{flaw: flawCode, theme: ThemeFailure, rules: []Rule{RuleCode, RuleOutcome}},
		{flaw: flawNulls, theme: ThemeCalm, rules: []Rule{RuleWire}},
		{flaw: flawNoHeader, theme: ThemeCalm, rules: []Rule{RuleNoID, RuleNoOutput}},
		{flaw: flawWrongPartition, theme: ThemeCalm, rules: []Rule{RuleWire, RuleNoOutput}},
		{flaw: flawRoute, theme: ThemeRoute, rules: []Rule{RuleRoute}},
		{flaw: flawRequest, theme: ThemeNamed, rules: []Rule{RuleRequest}},
		{flaw: flawHistory, theme: ThemeCalm, rules: []Rule{RuleHistory}},
		{flaw: flawHistoryBytes, theme: ThemeCalm, rules: []Rule{RuleHistoryBytes}},
		{flaw: flawCost, theme: ThemeCalm, rules: []Rule{RuleCost}},
		{flaw: flawBlanks, theme: ThemeCalm, rules: []Rule{RuleWire}},
		{flaw: flawOrder, theme: ThemeBurst, rules: []Rule{RuleOrder}},
		{flaw: flawSwap, theme: ThemeCalm, rules: []Rule{RuleItems}},
		{flaw: flawLoseResult, theme: ThemeCalm, rules: []Rule{RuleNoResult, RuleLost}},
		{flaw: flawLoseCall, theme: ThemeCalm, rules: []Rule{RuleCalls, RuleAlienResult}},
		{flaw: flawResult, theme: ThemeCalm, rules: []Rule{RuleResultValue, RuleLost}},
		{flaw: flawNoSet, theme: ThemeCalm, rules: []Rule{RuleSet}},
		{flaw: flawTwoMessages, theme: ThemeCalm, rules: []Rule{RuleTwoResults, RuleSet}},
		{flaw: flawAcceptAgain, theme: ThemeBurst, rules: []Rule{RuleAnswer}},
		{flaw: flawNoLetter, theme: ThemeMalformed, rules: []Rule{RuleLost}},
		{flaw: flawRefuse, theme: ThemeTwins, rules: []Rule{RuleNoOutput}},
		{flaw: flawLetterBytes, theme: ThemeMalformed, rules: []Rule{RuleLetter}},
	}
	// All cases run concurrently, because they mostly wait.
	var all sync.WaitGroup
	for _, c := range cases {
		bootstrap := broker(t, "agent", 2)
		startReference(t, bootstrap, "agent", reference{
			flaw: c.flaw, thinkTimeout: time.Minute, toolTimeout: time.Minute,
		})
		ctx := deadline(t, 5*time.Minute)
		all.Go(func() {
			opts := Options{Seed: 3, Sessions: 2, Turns: 5, Themes: []Theme{c.theme}, WaitLimit: 8 * time.Second}
			if c.once {
				opts.Oracle = []OracleOption{ExactlyOnce()}
			}
			r, _ := attack(ctx, bootstrap, "agent", opts)
			for _, rule := range c.rules {
				if !r.Has(rule) {
					t.Errorf("%s: %s is not among:\n%s", c.flaw, rule, r)
				}
			}
		})
	}
	all.Wait()
}
