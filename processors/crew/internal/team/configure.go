package team

import "github.com/turntable-streams/turntable/internal/crewbody"

// configure sets where the agents that are spawned from now on work.
func (w *work) configure(in crewbody.Configure) {
	switch {
	case in.Host == "" || in.Cwd == "":
		w.problem("A crew needs a host and a directory.")
		return
	case len(in.Host) > maxID || len(in.Cwd) > maxPath || len(in.Repository) > maxID || len(in.ProjectID) > maxID ||
		len(in.ProjectName) > maxName:
		w.problem("A setting of the crew is too long.")
		return
	}
	w.Settings.Configured = true
	w.Settings.Host, w.Settings.Cwd, w.Settings.Repository = in.Host, in.Cwd, in.Repository
	w.Roster.ProjectId, w.Roster.ProjectName = in.ProjectID, in.ProjectName
	w.step.ProjectID = in.ProjectID
	w.step.Event("crew:configured", map[string]any{
		"projectName": in.ProjectName, "host": in.Host, "cwd": in.Cwd, "repository": in.Repository,
	})
}

// problem tells people about an input that has no effect.
func (w *work) problem(message string) {
	w.step.Event("error", map[string]any{"message": message})
}

// pause holds back what waits for the crew's agents, or releases it.
func (w *work) pause(in crewbody.SystemPaused) {
	if w.Settings.Paused == in.Paused {
		return
	}
	w.Settings.Paused = in.Paused
	for _, m := range w.unended() {
		w.send(m.Id, crewbody.Pause{Paused: in.Paused})
	}
	w.step.Event("system:paused", map[string]any{"paused": in.Paused})
}
