package cut

// task is what a member does with one partition of the copartitioned inputs: Goka handles the records of that partition of
// all topics, and its deadlines, in one goroutine. A task whose record failed is paused until the record is handled again:
// cuts are made without the record and those behind it.
type task struct {
	id int32
	// acquired and begun count the records and deadlines that were handed out, and those whose callbacks have begun.
	acquired, begun int
	// first is the offset in each topic of the first record that was handed out; at is that of the first record whose
	// callback has not begun.
	first, at map[string]int64

	// noted are the topics whose position at the start is not in a cut yet although it must be committed.
	noted map[string]bool

	paused bool
	failed string           // topic of the record that is retried
	held   int              // acquired and not begun when the task was paused, and the failed one
	later  map[string]int64 // offsets to commit once the held records are handled
}

// task returns the task of a partition; s.mu is held. It returns nil for an input that Goka does not read.
func (s *Series) task(p Partition) *task {
	if s.repartitioned.has(p.Topic) {
		return nil
	}
	t := s.tasks[p.ID]
	if t == nil {
		t = &task{
			id: p.ID, first: map[string]int64{}, at: map[string]int64{}, noted: map[string]bool{}, later: map[string]int64{},
		}
		s.tasks[p.ID] = t
	}
	return t
}

func (t *task) acquire(topic string, next int64) {
	t.acquired++
	if _, ok := t.at[topic]; !ok && topic != "" {
		t.first[topic], t.at[topic] = next-1, next-1
	}
}

// holdBack replaces the offsets after held records by the offsets of the first ones, and keeps the former for later.
func (t *task) holdBack(offsets map[Partition]int64) {
	for topic, at := range t.at {
		p := Partition{topic, t.id}
		next, ok := offsets[p]
		if !ok || next <= at {
			continue
		}
		t.later[topic] = max(t.later[topic], next)
		if at == t.first[topic] && topic != t.failed && !t.noted[topic] {
			delete(offsets, p) // committed before; the metadata may have the attempts at that record
			continue
		}
		offsets[p] = at
		delete(t.noted, topic)
	}
}

// takeOffsets returns the offsets of the cut that is being made; s.mu is held. The next cut starts without any.
func (s *Series) takeOffsets() map[Partition]int64 {
	offsets := s.offsets
	s.offsets = make(map[Partition]int64, len(offsets))
	for _, t := range s.tasks {
		if t.paused {
			t.holdBack(offsets)
		}
	}
	return offsets
}

// progress reports whether records were handled since the series began; s.mu is held. offsets are those of the cut.
func (s *Series) progress(offsets map[Partition]int64) bool {
	for _, t := range s.tasks {
		for topic, at := range t.at {
			if at > t.first[topic] {
				return true
			}
		}
	}
	for p := range offsets {
		if s.repartitioned.has(p.Topic) {
			return true
		}
	}
	return false
}

// active returns how many records and deadlines a cut must wait for; s.mu is held.
func (s *Series) active() int { return s.inflight - s.held }

// Begun must be called in the partition's goroutine before each callback. It returns false if the callback must have no
// effects: the series ended while a record before it was held, and another cut will not be made.
func (s *Series) Begun(p Partition, offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(p)
	if t == nil {
		return true
	}
	if t.paused {
		return false
	}
	t.begun++
	if _, ok := t.at[p.Topic]; ok {
		t.at[p.Topic] = offset + 1
	}
	return true
}

// IsFirst reports whether the record at offset is the first one of a partition that was handed out.
func (s *Series) IsFirst(p Partition, offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, ok := s.task(p).first[p.Topic]
	return ok && first == offset
}

// Pause excludes the record or deadline whose callback runs, and those of its task behind it, from what cuts wait for: the
// callback has had no effects. Nothing more of the task is handed out. Cuts commit the record's own offset. The callback
// must not have effects before Resume has returned true, and must not return before that or before Context has ended.
func (s *Series) Pause(p Partition, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(p)
	if _, ok := t.at[p.Topic]; ok {
		t.at[p.Topic] = offset
	}
	t.paused, t.failed, t.held = true, p.Topic, t.acquired-t.begun+1
	s.held += t.held
	if s.active() == 0 {
		s.idleLocked()
	}
}

// Resume ends a pause once the gate is open: the record is in flight again. It returns false if the series has ended; then
// the task stays paused.
func (s *Series) Resume(p Partition, offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.shut && !s.ending {
		s.gate.Wait()
	}
	if s.ending || !s.beginLocked() {
		return false
	}
	t := s.task(p)
	if _, ok := t.at[p.Topic]; ok {
		t.at[p.Topic] = offset + 1
	}
	for topic, next := range t.later {
		at := Partition{topic, t.id}
		s.offsets[at] = max(s.offsets[at], next)
	}
	clear(t.later)
	s.held -= t.held
	s.sinceIdle += t.held
	s.records++
	t.paused, t.held = false, 0
	s.gate.Broadcast() // for the claims of the task
	return true
}

// FailAfterCut drains the series, makes the last cut and then fails the series. The caller must have paused the task whose
// record is the reason: the next series begins with that record, and nothing before it is handled again.
func (s *Series) FailAfterCut(err error) {
	select {
	case s.failing <- err:
	default: // another task's record
	}
}
