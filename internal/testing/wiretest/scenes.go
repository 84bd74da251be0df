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

// repeatedMessages sends messages more than once. Messages with the same turntable.id or the same request ID are the same
// message. Messages that only have the same bytes are different ones.
func (s *scene) repeatedMessages(ctx context.Context) error {
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

// requestRoutes sends messages with request IDs. Most of them have a route, which is read first: an output that is faster than the
// reader of reply-to has none. All are open at the same time.
func (s *scene) requestRoutes(ctx context.Context) error {
	id := func(i int) string { return fmt.Sprintf("%s-request-%d", s.name, i) }
	routes := map[int][]byte{}
	for i := range s.turns {
		if i%3 == 2 {
			continue
		}
		routes[i] = Descriptor("svc", "token-"+id(i), id(i))
		if _, err := s.Route(ctx, s.name, routes[i]); err != nil {
			return err
		}
	}
	if err := s.waitRead(ctx, s.names.ReplyTo); err != nil {
		return err
	}
	for i := range s.turns {
		expected := Sent{Fate: FateTurn, Case: "named", Codes: []string{""}, NoRoute: routes[i] == nil, Route: routes[i]}
		s.outputs++
		if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text(), RequestID: id(i)}, expected); err != nil {
			return err
		}
	}
	return s.wait(ctx)
}

// sessionRoute gives the session a route, which one message uses, and then removes it, as the chat API does after delivery.
func (s *scene) sessionRoute(ctx context.Context) error {
	for i := range s.turns {
		expected := Sent{Fate: FateTurn, Case: "routed", Codes: []string{""}, NoRoute: true}
		if i%2 == 0 {
			expected.NoRoute, expected.Route = false, Descriptor("svc", fmt.Sprintf("token-%s-%d", s.name, i), "")
			if _, err := s.Route(ctx, s.name, expected.Route); err != nil {
				return err
			}
			if err := s.waitRead(ctx, s.names.ReplyTo); err != nil {
				return err
			}
		}
		s.outputs++
		if _, err := s.Say(ctx, Say{Session: s.name, Text: s.plain().Text()}, expected); err != nil {
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

// misplacedMessages sends messages with wrong keys and to wrong partitions.
func (s *scene) misplacedMessages(ctx context.Context) error {
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

// overflowQueue sends more messages than a queue of the default size can hold.
func (s *scene) overflowQueue(ctx context.Context) error {
	var rs []Record
	for range 24 {
		rs = append(rs, s.Record(Say{Session: s.name, Text: s.plain().Text()}))
	}
	expected := Sent{Fate: FateTurn, Case: "flood", Codes: []string{"", "queue_full", "busy"}}
	if _, err := s.SendAll(ctx, expected, rs...); err != nil {
		return err
	}
	s.outputs += len(rs)
	return s.wait(ctx)
}

// cancelledTurns cancels an open turn whose model does not answer, and a queued message.
func (s *scene) cancelledTurns(ctx context.Context) error {
	if err := s.oneByOne(ctx, 1); err != nil {
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
	if err := s.oracle.waitForStep(ctx, s.name, silent); err != nil {
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
	return s.oneByOne(ctx, 1)
}

// failingWorkers plays turns whose model fails, alternating with turns in which at most a tool fails.
func (s *scene) failingWorkers(ctx context.Context, quirks ...Quirk) error {
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

// oversizedRecords sends 700 KB in a tool result, in messages and in an answer.
func (s *scene) oversizedRecords(ctx context.Context) error {
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

// malformedRecords sends all malformed records to every input, with a separate session for each input. The session sends
// its valid message only after they are dead-lettered, so that no malformed record is read while a turn is open.
func (s *scene) malformedRecords(ctx context.Context) error {
	for i, topic := range s.names.Inputs() {
		session := fmt.Sprintf("%s-%d", s.name, i)
		var dead []Coord
		for _, bad := range Malformed(s.names, topic, session) {
			at, err := s.Send(ctx, bad.Record, bad.Expected)
			if errors.Is(err, kerr.InvalidRecord) {
				continue // Kafka rejects some of them, such as a null key on a compacted topic
			}
			if err != nil {
				return fmt.Errorf("%s on %s: %w", bad.Expected.Case, topic, err)
			}
			if bad.Expected.Fate == FateDeadLetter {
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
