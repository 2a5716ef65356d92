package delivery

// Who waits for deliveries watches these names, as others watch streams.
const (
	// WakePushed is touched when something for a dispatcher may have become due.
	WakePushed = "wake:"
	wakeTarget = "wake:" // and the target's id
)

// WakeTarget is touched when something that this target fetches may have become due.
func WakeTarget(targetID string) string { return wakeTarget + targetID }

// Woken is the name to touch for a delivery.
func (d Delivery) Woken() string {
	if d.Pushed {
		return WakePushed
	}
	return WakeTarget(d.TargetID)
}
