package peer

func (t *transition) called(e Called)               {}
func (t *transition) delegated(e Commanded)         {}
func (t *transition) settled(e Commanded)           {}
func (t *transition) askedTask(e Commanded)         {}
func (t *transition) leftTask(e Commanded)          {}
func (t *transition) cancelledTask(e Commanded)     {}
func (t *transition) receipted(e Receipted)         {}
func (t *transition) turnEnded(e OutputArrived)     {}
func (t *transition) purgeTasks(r *Record)          {}
func (t *transition) tasksDue()                     {}
func (t *transition) forgetTask() bool              { return false }
func (t *transition) taskDeadlines(add func(int64)) {}
