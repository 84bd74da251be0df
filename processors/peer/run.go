package peer

func (t *transition) toolUsed(e Called)            {}
func (t *transition) accepted(e Commanded)         {}
func (t *transition) ended(e Commanded)            {}
func (t *transition) askedRun(e Commanded)         {}
func (t *transition) leftRun(e Commanded)          {}
func (t *transition) cancelledRun(e Commanded)     {}
func (t *transition) answered(e OutputArrived)     {}
func (t *transition) gateAsked(e GateAsked)        {}
func (t *transition) gateEnded(e GateEnded)        {}
func (t *transition) purgeRun(r *Record)           {}
func (t *transition) runDue()                      {}
func (t *transition) runDeadlines(add func(int64)) {}
