package platform

import "sync"

// slots count what is in progress: no more than most, and no more than each for one key. It remembers only keys in progress.
type slots struct {
	most, each int

	mu   sync.Mutex
	used int
	keys map[string]int
}

func newSlots(most, each int) *slots { return &slots{most: most, each: each, keys: map[string]int{}} }

// take reports whether a slot was free for the key. It does not wait.
func (s *slots) take(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.most || s.keys[key] >= s.each {
		return false
	}
	s.used++
	s.keys[key]++
	return true
}

func (s *slots) free(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.keys[key]--; s.keys[key] == 0 {
		delete(s.keys, key)
	}
}
