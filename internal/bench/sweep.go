package main

import "github.com/turntable-streams/turntable/processors"

// step is a scenario and the subjects that are measured in it.
type step struct {
	scenario
	subjects   []string
	guarantees []string
}

var bothGuarantees = []string{string(processors.AtLeastOnce), string(processors.ExactlyOnce)}

// steps returns the scenarios that the flags select.
func (s settings) steps() []step {
	switch s.sweep {
	case "table":
		return s.table()
	case "growth":
		return s.growth()
	case "all":
		return append(s.table(), s.dimensions()...)
	}
	one := step{scenario: s.one, subjects: []string{s.subject()}, guarantees: []string{s.one.Guarantee}}
	if s.both {
		one.guarantees = bothGuarantees
	}
	if s.floor {
		one.subjects = append([]string{subjectFloor, subjectBare, subjectGoka}, one.subjects...)
	}
	return []step{one}
}

func (s settings) subject() string {
	switch {
	case s.pid != 0:
		return subjectPID
	case s.command != "":
		return subjectCommand
	default:
		return subjectTurntable
	}
}

// table returns the scenarios of the README: three histories, both guarantees, the floor and stock Goka.
func (s settings) table() []step {
	var out []step
	for _, history := range []int{0, 10 << 10, 100 << 10} {
		at := s.one
		at.History = history
		if history > 50<<10 {
			at.Sessions = max(at.Sessions, 2000)
		}
		out = append(out, step{
			scenario: at, guarantees: bothGuarantees,
			subjects: []string{subjectFloor, subjectBare, subjectGoka, s.subject()},
		})
	}
	return out
}

// growth returns scenarios with a table of a million sessions, and with a second instance for the same partitions.
func (s settings) growth() []step {
	var out []step
	for _, change := range []func(*scenario){
		func(*scenario) {},
		func(at *scenario) { at.Stored = 1_000_000 },
		func(at *scenario) { at.Instances, at.Partitions = 2, max(at.Partitions, 2) },
	} {
		at := s.one
		change(&at)
		out = append(out, step{scenario: at, subjects: []string{s.subject()}, guarantees: []string{at.Guarantee}})
	}
	return out
}

// longTurn is a turn of many steps, within which the conversation grows by about 70 KB.
func longTurn(at *scenario) { at.Steps, at.Tools, at.Said = 5, 3, 2000 }

// dimensions returns scenarios that each change one setting of the flags. Histories and guarantees are in table.
func (s settings) dimensions() []step {
	var out []step
	with := func(change func(*scenario)) {
		at := s.one
		change(&at)
		if at != s.one {
			out = append(out, step{
				scenario: at, subjects: []string{subjectFloor, s.subject()}, guarantees: []string{at.Guarantee},
			})
		}
	}
	with(func(at *scenario) { at.Partitions = 1; at.Instances = 1 })
	with(func(at *scenario) { at.Partitions = 4 })
	for _, tools := range []int{0, 3, 20} {
		with(func(at *scenario) { at.Tools = tools })
	}
	with(longTurn)
	for _, sessions := range []int{1_000, 100_000} {
		with(func(at *scenario) { at.Sessions = sessions })
	}
	with(func(at *scenario) { at.Instances = 1 })
	with(func(at *scenario) { at.Instances = 2; at.Partitions = max(at.Partitions, 2) })
	return out
}
