// Package progress decides which records of a partition a member of a consumer group starts, skips, defers or joins, and
// what it commits. It has no clock and does no I/O: the caller passes the time and performs the decisions.
//
// A commit has an offset, before which every record is settled, and a metadata string, which holds the rest of what the
// next owner has to know (Checkpoint):
//
//   - Records beyond the offset that are settled. The next owner skips them, so one slow record repeats no other.
//   - Records whose handler was called without settling them, with the number of calls. The next owner delivers them as
//     repeated.
//   - The handover: a record that was still running when its partition moved has a time until which its call may run
//     elsewhere. The next owner defers the record until then; by then the previous owner has ended the call. It waits no
//     longer once the previous owner has left the group, because a member stays until its calls have ended, and
//     skips the record once the previous owner has noted that it is settled (Note). Should the
//     partition return first, the previous owner joins its own call and does not start another.
//   - The reservation: an offset below which records may have been started since the commit. A member starts a record
//     only when a commit that reserves its offset was acknowledged. After a crash the next owner therefore knows every
//     record that may have been handled and delivers these, and only these, as repeated.
//
// A commit whose answer is lost may arrive late and replace newer ones (Doubt). The member repeats its last commit until that
// is unlikely, and does not rely on reservations that the late one lacks.
//
// The handover is a point in time: it relies on clocks that differ by much less than the handover. If they differ by more,
// or a member loses its partition without a last commit (a crash, a session timeout), a record can run twice at the same
// time. Its second delivery is then marked as repeated too.
package progress
