'use strict'

const STEPS = [[500, 250], [2000, 480], [10000, 990]]
const ZONES = { home: 1, near: 1.5, far: 2.5 }

/**
 * The price of a parcel in cents.
 *
 * @param {number} weight in grams; more than 10 kg cost 100 cents for each further kilogram.
 * @param {string} zone `home`, `near` or `far`
 */
function postage (weight, zone) {
  if (!(weight > 0)) throw new RangeError('weight must be positive')
  const factor = ZONES[zone]
  if (factor === undefined) throw new RangeError(`unknown zone: ${zone}`)
  const step = STEPS.find(([most]) => weight <= most)
  const base = step ? step[1] : 990 + 100 * Math.ceil((weight - 10000) / 1000)
  return Math.round(base * factor)
}

module.exports = { postage, zones: () => Object.keys(ZONES) }
