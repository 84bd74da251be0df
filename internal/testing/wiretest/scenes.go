package wiretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// twins sends messages more than once. Messages that only have equal bytes are different ones; those with one
// turntable.id or one request id are the same message.
func (s *scene) twins(ctx context.Context) error {
	at := time.UnixMilli(1_790_000_000_000)
	say := Say{Session: s.name, User: "twin", Text: s.plain().Text(), Time: at}
	turn := Sent{Fate: FateTurn, Case: "twin", Codes: []string{""}}
	if _, err := s.SendAll(ctx, turn, s.Record(say), s.Record(say)); err != nil {
		return err
	}
	s.outputs += 2
	if err := s.wait(ctx); err != nil {
		return err
	}
	caused := s.Record(Say{Session: s.name, Text: s.plain().Text(), Time: at})
	caused.Headers = []kgo.RecordHeader{{Key: headerID, Value: []byte("cause-" + s.name)}}
	named := s.Record(Say{Session: s.name, Text: s.plain().Text(), RequestID: "twice-" + s.name})
	other := s.Record(Say{Session: s.name, Text: s.plain().Text(), RequestID: "twice-" + s.name})
	if _, err := s.SendAll(ctx, Sent{}, caused, named, caused, other, s.Record(say)); err != nil {
		return err
	}
	s.outputs += 3
	return s.wait(ctx)
}

// named gives messages request ids, and most of them routes, which come first. All are open at once.
func (s *scene) named(ctx context.Context) error {
	for i := range s.turns {
		id := fmt.Sprintf("%s-request-%d", s.name, i)
		known := Sent{Fate: FateTurn, Case: "named", Codes: []string{""}, NoRoute: true}
		if i%3 != 2 {
			known.NoRoute, known.Route = false, Descriptor("svc", "token-"+id, id)
			if _, err := s.Route(ctx, s.name, known.Route); err != nil {
				return err
			}
		}
		s.outputs++
		if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text(), RequestID: id}, known); err != nil {
			return err
		}
	}
	return s.wait(ctx)
}

// routed gives the session a route, which one message uses, and removes it as the chat API does after delivery.
func (s *scene) routed(ctx context.Context) error {
	for i := range s.turns {
		known := Sent{Fate: FateTurn, Case: "routed", Codes: []string{""}, NoRoute: true}
		if i%2 == 0 {
			known.NoRoute, known.Route = false, Descriptor("svc", fmt.Sprintf("token-%s-%d", s.name, i), "")
			if _, err := s.Route(ctx, s.name, known.Route); err != nil {
				return err
			}
		}
		s.outputs++
		if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text()}, known); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		if i%4 == 0 {
			if _, err := s.Route(ctx, s.name, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// astray puts messages where they do not belong.
func (s *scene) astray(ctx context.Context) error {
	for i := range s.turns {
		r := s.Record(Say{Session: s.name, Text: s.plan().Text()})
		switch i % 3 {
		case 0:
			r.Key = []byte("not-" + s.name)
		case 1:
			r.Partition = Elsewhere
		default:
			r.Key, r.Partition = []byte("nor-"+s.name), Elsewhere
		}
		s.outputs++
		if _, err := s.Send(ctx, r, Sent{Fate: FateTurn, Case: "astray", Codes: []string{""}}); err != nil {
			return err
		}
		if i%2 == 0 {
			if err := s.wait(ctx); err != nil {
				return err
			}
		}
	}
	return s.wait(ctx)
}

// flood hands over more than a queue of the default size holds.
func (s *scene) flood(ctx context.Context) error {
	var rs []Record
	for range 24 {
		rs = append(rs, s.Record(Say{Session: s.name, Text: s.plain().Text()}))
	}
	known := Sent{Fate: FateTurn, Case: "flood", Codes: []string{"", "queue_full", "busy"}}
	if _, err := s.SendAll(ctx, known, rs...); err != nil {
		return err
	}
	s.outputs += len(rs)
	return s.wait(ctx)
}

// cancelled cancels a turn that would hang, and one that waits behind it.
func (s *scene) cancelled(ctx context.Context) error {
	if err := s.calm(ctx, 1); err != nil {
		return err
	}
	silent := s.plain()
	silent.Quirks = []Quirk{QuirkSilence}
	codes := []string{"cancelled", "think_timeout"}
	if _, err := s.Say(ctx, Say{Session: s.name, Text: silent.Text()},
		Sent{Fate: FateTurn, Case: "silent", Codes: codes}); err != nil {
		return err
	}
	waiting := "waiting-" + s.name
	if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text(), RequestID: waiting},
		Sent{Fate: FateTurn, Case: "waiting", Codes: append(codes, "")}); err != nil {
		return err
	}
	s.outputs += 2
	if err := s.oracle.waitAsked(ctx, s.name, silent); err != nil {
		return err
	}
	for _, id := range []string{waiting, "nobody", ""} {
		if _, err := s.Control(ctx, s.name, "cancel", id); err != nil {
			return err
		}
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.calm(ctx, 1)
}

// failing plays models that fail, between turns in which at most a tool does.
func (s *scene) failing(ctx context.Context, quirks ...Quirk) error {
	for _, q := range quirks {
		p := s.plain()
		p.Quirks = []Quirk{q}
		if err := s.ask(ctx, p); err != nil {
			return err
		}
		p = s.plan()
		if s.theme == ThemeSilence {
			p.Deeds[0] = DeedMissing
		}
		if err := s.ask(ctx, p); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// oversized hands over 700 KB in every place there is.
func (s *scene) oversized(ctx context.Context) error {
	bulk := "\n" + strings.Repeat("0123456789", 70_000)
	any := Sent{Fate: FateTurn, Case: "oversized", Codes: []string{"", "too_large"}}
	huge := s.plain()
	huge.Steps, huge.Tools, huge.Deeds = 1, 2, []Deed{DeedHuge, DeedOK}
	padded := s.plain()
	padded.Pad = 700_000
	after := s.plain()
	for _, text := range []string{
		huge.Text(), s.plain().Text() + bulk, s.plain().Text() + bulk, padded.Text(), after.Text(),
	} {
		s.outputs++
		if _, err := s.Say(ctx, Say{Session: s.name, Text: text}, any); err != nil {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// malformed sends all malformed records to every input, each input with its own session. When they are dead-lettered,
// the session asks a question, so that no malformed record meets an open turn.
func (s *scene) malformed(ctx context.Context) error {
	for i, topic := range s.names.Inputs() {
		session := fmt.Sprintf("%s-%d", s.name, i)
		var dead []Coord
		for _, bad := range Malformed(s.names, topic, session) {
			at, err := s.Send(ctx, bad.Record, bad.Known)
			if errors.Is(err, kerr.InvalidRecord) {
				continue // Kafka rejects it, such as a null key on a compacted topic
			}
			if err != nil {
				return fmt.Errorf("%s on %s: %w", bad.Known.Case, topic, err)
			}
			if bad.Known.Fate == FateDeadLetter {
				dead = append(dead, at)
			}
		}
		if err := s.oracle.WaitLetters(ctx, dead...); err != nil {
			return fmt.Errorf("dead letters of %s: %w", topic, err)
		}
		p := s.plain()
		codes := p.Codes()
		if topic == s.names.ThinkDLQ {
			codes = append(codes, "think_failed") // the last failure record can end the turn
		}
		if _, err := s.Say(ctx, Say{Session: session, Text: p.Text()},
			Sent{Fate: FateTurn, Case: "after malformed", Codes: codes}); err != nil {
			return err
		}
	}
	return nil
}
