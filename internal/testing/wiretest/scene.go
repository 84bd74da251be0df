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
	ThemeTwins     Theme = "twins"     // the same message again: by bytes, by cause, by request id
	ThemeNamed     Theme = "named"     // reply routes by request id, several open
	ThemeRoute     Theme = "route"     // the session's reply route
	ThemeAstray    Theme = "astray"    // wrong keys, wrong partitions
	ThemeFlood     Theme = "flood"     // more messages than a queue holds
	ThemeCancel    Theme = "cancel"    // cancelled turns
	ThemeFailure   Theme = "failure"   // models that fail
	ThemeSilence   Theme = "silence"   // models and tools that keep silent: only deadlines end their turns
	ThemeClear     Theme = "clear"     // history cleared by a tombstone
	ThemePurge     Theme = "purge"     // session ended while it is idle
	ThemeOversize  Theme = "oversize"  // messages, results and answers of 700 KB
	ThemeMalformed Theme = "malformed" // every malformed record on every input, and a good message after them
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
		return s.calm(ctx, s.turns)
	case ThemeBurst:
		return s.burst(ctx)
	case ThemeTwins:
		return s.twins(ctx)
	case ThemeNamed:
		return s.named(ctx)
	case ThemeRoute:
		return s.routed(ctx)
	case ThemeAstray:
		return s.astray(ctx)
	case ThemeFlood:
		return s.flood(ctx)
	case ThemeCancel:
		return s.cancelled(ctx)
	case ThemeFailure:
		return s.failing(ctx, QuirkFail, QuirkFailText)
	case ThemeSilence:
		return s.failing(ctx, QuirkSilence, QuirkNoEnd)
	case ThemeClear:
		return s.interrupted(ctx, s.names.Think, nil)
	case ThemePurge:
		return s.interrupted(ctx, s.names.SessionControl, []byte(`{"action":"purge"}`))
	case ThemeOversize:
		return s.oversized(ctx)
	case ThemeMalformed:
		return s.malformed(ctx)
	default:
		return fmt.Errorf("theme %q is unknown", s.theme)
	}
}

// ask hands over a plan and counts the output it will have.
func (s *scene) ask(ctx context.Context, p Plan) error {
	s.outputs++
	_, err := s.Ask(ctx, s.name, p)
	return err
}

// wait blocks until every message asked so far has its output.
func (s *scene) wait(ctx context.Context) error { return s.oracle.WaitOutputs(ctx, s.name, s.outputs) }

func one[E any](r *rand.Rand, list ...E) E { return list[r.IntN(len(list))] }

// plain is a plan whose workers behave.
func (s *scene) plain() Plan {
	s.plans++
	return Plan{Key: fmt.Sprintf("%s.%d", s.name, s.plans), Steps: s.random.IntN(3), Tools: 1 + s.random.IntN(3)}
}

// plan is a plan whose workers do what workers may do, and still end in an answer.
func (s *scene) plan() Plan {
	p := s.plain()
	shape := one(s.random, "", "", QuirkCamel, QuirkLegacy, QuirkBlocks, QuirkSilentText, QuirkAgent)
	items := one(s.random, "", QuirkNullItems, QuirkBlankID, QuirkRepeatID, QuirkSameIDs, QuirkEndTools, QuirkNullMessage)
	again := one(s.random, "", QuirkRepeat, QuirkLateRepeat, QuirkRethink, QuirkGarbage)
	// An echo that names nothing leaves open which step a repeat answers: such a worker does not repeat here.
	echo := Quirk("")
	if (again == "" || again == QuirkGarbage) && shape != QuirkLegacy {
		echo = one(s.random, "", QuirkNoEcho, QuirkShortEcho)
	}
	for _, q := range []Quirk{shape, items, again, echo} {
		if q != "" {
			p.Quirks = append(p.Quirks, q)
		}
	}
	for range 3 {
		p.Deeds = append(p.Deeds, one(s.random,
			DeedOK, DeedTwice, DeedAgain, DeedLate, DeedForeign, DeedEarly, DeedError, DeedFail, DeedText, DeedList,
			DeedNumber, DeedNull, DeedCount, DeedNames, DeedElsewhere, DeedJunk))
	}
	return p
}

func (s *scene) calm(ctx context.Context, turns int) error {
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

func (s *scene) burst(ctx context.Context) error {
	for range s.turns {
		if err := s.ask(ctx, s.plan()); err != nil {
			return err
		}
	}
	return s.wait(ctx)
}

// interrupted plays turns before and after a record that clears the session. Topics have no order among each other, so
// the scene waits for the dead letter of an unreadable record that follows it.
func (s *scene) interrupted(ctx context.Context, topic string, value []byte) error {
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
	if _, err := s.Send(ctx, r, Sent{Fate: FateExplained, Case: "makes forget"}); err != nil {
		return err
	}
	r.Value = []byte(`{"session_id":`)
	at, err := s.Send(ctx, r, Sent{Fate: FateDeadLetter, Case: "cut off"})
	if err != nil {
		return err
	}
	if err := s.oracle.WaitLetters(ctx, at); err != nil {
		return err
	}
	s.outputs++
	if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text()},
		Sent{Fate: FateTurn, Case: "after forgetting", Codes: []string{""}, Forgotten: true}); err != nil {
		return err
	}
	return s.calm(ctx, 1)
}
