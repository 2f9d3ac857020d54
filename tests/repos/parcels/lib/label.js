'use strict'

const MAX_NAME = 24

// Shortens a name that is too long for a label, at a space if there is one: the rest is an ellipsis.
function shortened (name) {
  if (name.length <= MAX_NAME) return name
  const at = name.lastIndexOf(' ', MAX_NAME - 1)
  return name.slice(0, at > 0 ? at : MAX_NAME - 1) + '…'
}

/** The label of a parcel on one line: name, street and town, separated by commas; empty parts are left out. */
exports.label = function label (parcel) {
  const parts = [shortened(parcel.name || ''), parcel.street, parcel.town]
  return parts.map((part) => String(part || '').trim()).filter(Boolean).join(', ')
}
