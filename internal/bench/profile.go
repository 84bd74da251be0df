package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profile is a CPU profile that is being written. Go counts allocations from the start of the process, so alloc-base.pprof
// has the allocations at the begin of the profile, for go tool pprof -base.
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

// stop finishes the profile. On a nil profile it does nothing.
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
	runtime.GC() // the allocation profile is updated by garbage collections
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
