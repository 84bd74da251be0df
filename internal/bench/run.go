package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// run measures the scenarios that the flags select. Measurements are printed even if a later scenario fails.
func run(ctx context.Context, args []string, out, notes io.Writer) (err error) {
	s, err := parse(args, notes)
	if err != nil {
		return err
	}
	b, err := startBrokers(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	rep := newReport(b.description, args)
	defer func() { err = errors.Join(err, rep.write(out, s.json)) }()
	note := newProgress(notes)
	if err := warmBrokers(ctx, s, b, note); err != nil {
		return err
	}
	number := 0
	for _, st := range s.steps() {
		var floor *result
		for _, subject := range st.subjects {
			guarantees := st.guarantees
			if isFloor(subject) || subject == subjectPID {
				guarantees = guarantees[:1]
			}
			for _, g := range guarantees {
				number++
				t := trial{settings: s, scenario: st.scenario, subject: subject, brokers: b, number: number, note: note}
				t.Guarantee = g
				r, err := t.run(ctx)
				if r != nil {
					if subject == subjectFloor {
						floor = r
					}
					r.compare(floor)
					rep.add(r)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// warmBrokers warms up a Kafka that has just started, so that its JIT compilation does not slow down the first subject.
func warmBrokers(ctx context.Context, s settings, b *brokers, note *progress) error {
	if b.cluster == nil {
		return nil
	}
	s.turns, s.warmup, s.alone, s.pprof = 0, 0, 0, ""
	s.duration = min(s.duration, 8*time.Second)
	t := trial{settings: s, scenario: s.one, subject: subjectFloor, brokers: b, note: note}
	_, err := t.run(ctx)
	return err
}

func join(words []string) string { return strings.Join(words, ",") }
