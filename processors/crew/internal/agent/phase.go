package agent

import "github.com/turntable-streams/turntable/processors/crew/internal/view"

// The phases of an agent. Its status follows from them.
const (
	phaseStarting = "starting"
	phaseResuming = "resuming"
	phaseIdle     = "idle"
	phaseRunning  = "running"
	phaseThinking = "thinking"
	phaseStopping = "stopping"
	phaseStopped  = "stopped"
	phaseError    = "error"
)

// status is what clients and the crew see of the phase. An agent that was ended on request is terminated whatever its
// process's exit code is.
func (s *State) status() string {
	switch s.phase() {
	case phaseStarting:
		return view.Creating
	case phaseResuming, phaseRunning, phaseThinking:
		return view.Running
	case phaseIdle:
		return view.Idle
	case phaseStopped:
		if s.ExitCode == 0 && !s.Terminated {
			return view.Completed
		}
		return view.Terminated
	case phaseError:
		return view.Failed
	default:
		if s.Restarts {
			return view.Creating // it is not to end
		}
		return view.Terminated
	}
}

// phase is the phase for clients. An agent that waits for its host is one that is being started, until the host says more.
func (s *State) phase() string {
	if s.Process.GetSilent() {
		return phaseStarting
	}
	return s.Phase
}

// Live reports whether an agent has not ended for good: it has a process, or will get one. Its status may be failed while it
// waits for its restart.
func Live(s *State) bool {
	return s.GetMember() != nil && (s.Process != nil || s.AwaitsHost || s.RestartMs != 0 || s.RestartAsked)
}
