package team

import "google.golang.org/protobuf/proto"

// toldTask is a task as people know it.
type toldTask struct{ id, state string }

// toldTasks returns the tasks as they were before a step.
func (w *work) toldTasks() (told []toldTask) {
	for _, t := range w.Tasks {
		told = append(told, toldTask{t.Id, stateOf(t)})
	}
	return told
}

func stateOf(t *Task) string {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
	if err != nil {
		panic("crew: encode a task: " + err.Error())
	}
	return string(raw)
}

// tellTasks tells people which tasks have changed in a step, and which are gone. IDs are unique among the tasks of a lead, so a state,
// which names the lead, is that of one task.
func (w *work) tellTasks(before []toldTask) {
	same, left := map[string]bool{}, map[string]bool{}
	for _, t := range before {
		same[t.state] = true
	}
	for _, t := range w.Tasks {
		left[t.Id] = true
		if !same[stateOf(t)] {
			w.step.Event("task:updated", map[string]any{"task": viewOfTask(t, w.Roster.GetProjectId())})
		}
	}
	for _, t := range before {
		if !left[t.id] {
			left[t.id] = true
			w.step.Event("task:removed", map[string]any{"taskId": t.id})
		}
	}
}
