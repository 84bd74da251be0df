// Package permission decides what an agent asks permission for. A request that is not dangerous is allowed at once under
// autopilot. Any other request becomes a gate, and the gate's outcome answers it. Every request of a process that still runs is answered exactly once.
// The functions are pure: what they do is in the effects of the step.
//
//	autopilot            the first allow_once option, else cancelled; a dangerous request is asked nevertheless
//	approved             the option that the person chose, else the first allow_once option, else cancelled
//	denied               the reject option that the person chose, else the first reject_once option, else cancelled
//	timed out, cancelled cancelled
//
// An allow_always option is selected only if a person chooses it, and is not offered for dangerous requests.
package permission
