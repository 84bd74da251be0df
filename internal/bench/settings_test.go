package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContradictoryFlagsAreRejected(t *testing.T) {
	for args, want := range map[string]string{
		"-history 100":                "-history 100",
		"-partitions 0":               "at least 1",
		"-instances 2 -partitions 1":  "more than -partitions",
		"-tools -1":                   "-tools -1",
		"-concurrency 10 -sessions 9": "-concurrency 10",
		"-guarantee twice":            "-guarantee twice",
		"-storage tape":               "-storage tape",
		"-duration 0s":                "-turns or -duration",
		"-turns -1":                   "not negative",
		"-rate -1":                    "-rate -1",
		"-timeout 0s":                 "-timeout",
		"-sweep some":                 "-sweep some",
		"-kafka -brokers here:1":      "-kafka and -brokers exclude",
		"-pid 1 -command x":           "-pid and -command exclude",
		"-pid 1":                      "-pid needs",
		"-pid 1 -brokers b:1 -agent a -sweep table": "measures one process",
		"-command x -pprof /tmp":                    "of this library",
		"more":                                      "unexpected",
		"-unknown":                                  "not defined",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorIs(t, err, errUsage, args)
		require.ErrorContains(t, err, want, args)
	}
	_, err := parse([]string{"-h"}, io.Discard)
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestSweepVariesOneSettingAtATime(t *testing.T) {
	s, err := parse([]string{"-sweep", "all"}, io.Discard)
	require.NoError(t, err)
	table := s.table()
	require.Len(t, table, 3)
	require.Equal(t, []int{0, 10 << 10, 100 << 10}, []int{table[0].History, table[1].History, table[2].History})
	require.Equal(t, 2000, table[2].Sessions)
	for _, st := range table {
		require.Equal(t, []string{subjectFloor, subjectBare, subjectGoka, subjectTurntable}, st.subjects)
		require.Equal(t, bothGuarantees, st.guarantees)
	}
	var changed []scenario
	for _, st := range s.dimensions() {
		require.NotEqual(t, s.one, st.scenario)
		changed = append(changed, st.scenario)
	}
	with := func(change func(*scenario)) scenario { at := s.one; change(&at); return at }
	require.Equal(t, []scenario{
		with(func(at *scenario) { at.Partitions = 1 }),
		with(func(at *scenario) { at.Tools = 0 }),
		with(func(at *scenario) { at.Tools = 3 }),
		with(func(at *scenario) { at.Tools = 20 }),
		with(longTurn),
		with(func(at *scenario) { at.Sessions = 100_000 }),
		with(func(at *scenario) { at.Instances = 2 }),
	}, changed)
	require.Len(t, s.steps(), len(table)+len(changed))
}
