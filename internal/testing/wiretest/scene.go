package wiretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Theme is the kind of a session in an attack.
type Theme string

// The themes.
const (
	ThemeCalm      Theme = "calm"      // turn after turn, models and tools with quirks
	ThemeBurst     Theme = "burst"     // all messages at once
	ThemeTwins     Theme = "twins"     // repeated messages: equal bytes, equal turntable.id, equal request ID
	ThemeNamed     Theme = "named"     // reply routes of requests, several of them open
	ThemeRoute     Theme = "route"     // reply routes of sessions
	ThemeAstray    Theme = "astray"    // wrong keys, wrong partitions
	ThemeFlood     Theme = "flood"     // more messages than a queue holds
	ThemeCancel    Theme = "cancel"    // cancelled turns
	ThemeFailure   Theme = "failure"   // models that fail
	ThemeSilence   Theme = "silence"   // models and tools that do not answer: deadlines end their turns
	ThemeClear     Theme = "clear"     // history cleared by a tombstone
	ThemePurge     Theme = "purge"     // session ended while it is idle
	ThemeOversize  Theme = "oversize"  // messages, results and answers of 700 KB
	ThemeMalformed Theme = "malformed" // every malformed record on every input, followed by a valid message
)

// Themes returns all themes except ThemeSilence, which needs a pipeline with short deadlines.
func Themes() []Theme {
	return []Theme{
		ThemeCalm, ThemeBurst, ThemeTwins, ThemeNamed, ThemeRoute, ThemeAstray, ThemeFlood, ThemeCancel, ThemeFailure,
		ThemeClear, ThemePurge, ThemeOversize, ThemeMalformed,
	}
}

// scene is one session being played.
type scene struct {
	*Driver
	oracle  *Oracle
	theme   Theme
	name    string
	turns   int
	random  *rand.Rand
	plans   int
	outputs int
}

func (s *scene) play(ctx context.Context) error {
	switch s.theme {
	case ThemeCalm:
		return s.oneByOne(ctx, s.turns)
	case ThemeBurst:
		return s.allAtOnce(ctx)
	case ThemeTwins:
		return s.repeatedMessages(ctx)
	case ThemeNamed:
		return s.requestRoutes(ctx)
	case ThemeRoute:
		return s.sessionRoute(ctx)
	case ThemeAstray:
		return s.misplacedMessages(ctx)
	case ThemeFlood:
		return s.overflowQueue(ctx)
	case ThemeCancel:
		return s.cancelledTurns(ctx)
	case ThemeFailure:
		return s.failingWorkers(ctx, QuirkFail, QuirkFailText)
	case ThemeSilence:
		return s.failingWorkers(ctx, QuirkSilence, QuirkNoEnd)
	case ThemeClear:
		return s.clearedHistory(ctx, s.names.Think, nil)
	case ThemePurge:
		return s.clearedHistory(ctx, s.names.SessionControl, []byte(`{"action":"purge"}`))
	case ThemeOversize:
		return s.oversizedRecords(ctx)
	case ThemeMalformed:
		return s.malformedRecords(ctx)
	default:
		return fmt.Errorf("theme %q is unknown", s.theme)
	}
}

// ask sends a message with a plan and counts the expected output.
func (s *scene) ask(ctx context.Context, p Plan) error {
	s.outputs++
	_, err := s.Ask(ctx, s.name, p)
	return err
}

// wait blocks until every message sent so far has its output.
func (s *scene) wait(ctx context.Context) error { return s.oracle.WaitOutputs(ctx, s.name, s.outputs) }

func pickOne[E any](r *rand.Rand, list ...E) E { return list[r.IntN(len(list))] }

// plain returns a plan without quirks and deeds.
func (s *scene) plain() Plan {
	s.plans++
	return Plan{Key: fmt.Sprintf("%s.%d", s.name, s.plans), Steps: s.random.IntN(3), Tools: 1 + s.random.IntN(3)}
}

// plan returns a plan with permitted quirks and deeds, which ends in an answer.
func (s *scene) plan() Plan {
	p := s.plain()
	shape := pickOne(s.random, "", "", QuirkCamel, QuirkLegacy, QuirkBlocks, QuirkSilentText, QuirkAgent)
	items := pickOne(s.random, "", QuirkNullItems, QuirkBlankID, QuirkRepeatID, QuirkSameIDs, QuirkEndTools, QuirkNullMessage)
	again := pickOne(s.random, "", QuirkRepeat, QuirkLateRepeat, QuirkRethink, QuirkGarbage)
	// Without a valid echo, the step that a repeated response answers is unknown. Such plans have no repeats.
	echo := Quirk("")
	if (again == "" || again == QuirkGarbage) && shape != QuirkLegacy {
		echo = pickOne(s.random, "", QuirkNoEcho, QuirkShortEcho)
	}
	for _, q := range []Quirk{shape, items, again, echo} {
		if q != "" {
			p.Quirks = append(p.Quirks, q)
		}
	}
	for range 3 {
		p.Deeds = append(p.Deeds, pickOne(s.random,
			DeedOK, DeedTwice, DeedAgain, DeedLate, DeedForeign, DeedEarly, DeedError, DeedFail, DeedText, DeedList,
			DeedNumber, DeedNull, DeedCount, DeedNames, DeedElsewhere, DeedJunk))
	}
	return p
}

func (s *scene) oneByOne(ctx context.Context, turns int) error {
	for range turns {
		if err := s.ask(ctx, s.plan()); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) allAtOnce(ctx context.Context) error {
	for range s.turns {
		if err := s.ask(ctx, s.plan()); err != nil {
			return err
		}
	}
	return s.wait(ctx)
}

// waitRead waits until what the scene has written to a topic is read. Topics have no order among each other, so it waits for the dead
// letter of an unreadable record that follows.
func (s *scene) waitRead(ctx context.Context, topic string) error {
	at, err := s.Send(ctx, Record{Topic: topic, Key: []byte(s.name), Value: []byte(`{"session_id":`), Partition: AtHome},
		Sent{Fate: FateDeadLetter, Case: "cut off"})
	if err != nil {
		return err
	}
	return s.oracle.WaitLetters(ctx, at)
}

// clearedHistory plays turns before and after a record that clears the session.
func (s *scene) clearedHistory(ctx context.Context, topic string, value []byte) error {
	for range 2 {
		p := s.plan()
		// A purge also discards the ids of used records: a repeat from before it would be used again.
		p.Quirks = slices.DeleteFunc(p.Quirks, func(q Quirk) bool {
			return topic == s.names.SessionControl && slices.Contains([]Quirk{
				QuirkRepeat, QuirkLateRepeat, QuirkRethink, QuirkGarbage, QuirkSameIDs,
			}, q)
		})
		if err := s.ask(ctx, p); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	r := Record{Topic: topic, Key: []byte(s.name), Value: value, Partition: AtHome}
	if _, err := s.Send(ctx, r, Sent{Fate: FateExplained, Case: "clears the history"}); err != nil {
		return err
	}
	if err := s.waitRead(ctx, topic); err != nil {
		return err
	}
	s.outputs++
	if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text()},
		Sent{Fate: FateTurn, Case: "after the history was cleared", Codes: []string{""}, Forgotten: true}); err != nil {
		return err
	}
	return s.oneByOne(ctx, 1)
}
