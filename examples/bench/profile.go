package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profile is a CPU profile being written. Allocations are counted from the start of a process: alloc-base.pprof has
// them as they were when the profile began, for go tool pprof -base.
type profile struct {
	dir string
	cpu *os.File
}

func startProfile(dir string) (*profile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := writeAllocations(filepath.Join(dir, "alloc-base.pprof")); err != nil {
		return nil, err
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return &profile{dir: dir, cpu: cpu}, nil
}

// stop of no profile does nothing.
func (p *profile) stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return errors.Join(p.cpu.Close(), writeAllocations(filepath.Join(p.dir, "alloc.pprof")))
}

func writeAllocations(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	runtime.GC() // the profile knows what the last collection saw
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
