package main

import (
	"context"
	"errors"
	"io"
	"strings"
)

// run measures what the flags ask for. What was measured is printed, whatever went wrong later.
func run(ctx context.Context, args []string, out, notes io.Writer) (err error) {
	s, err := parse(args, notes)
	if err != nil {
		return err
	}
	b, err := startBrokers(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	rep := newReport(b.what, args)
	defer func() { err = errors.Join(err, rep.write(out, s.json)) }()
	note := newProgress(notes)
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

func join(words []string) string { return strings.Join(words, ",") }
