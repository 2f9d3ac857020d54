'use strict'

/** Holds parcels and counts them by zone. */
class Depot {
  constructor () {
    this.parcels = []
  }

  /** Put a parcel into the depot; returns the number of parcels in it. */
  add (parcel) {
    this.parcels.push(parcel)
    return this.parcels.length
  }

  /** The number of parcels of each zone, with the zones in alphabetical order. */
  byZone () {
    const counts = {}
    for (const { zone } of [...this.parcels].sort((a, b) => (a.zone < b.zone ? -1 : 1))) {
      counts[zone] = (counts[zone] || 0) + 1
    }
    return counts
  }

  /** Take the heaviest parcel out; undefined if there is none. */
  takeHeaviest () {
    if (this.parcels.length === 0) return undefined
    let best = 0
    this.parcels.forEach((parcel, place) => {
      if (parcel.weight > this.parcels[best].weight) best = place
    })
    return this.parcels.splice(best, 1)[0]
  }
}

module.exports = Depot
